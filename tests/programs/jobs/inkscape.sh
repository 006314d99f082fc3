# inkscape
printf '<svg xmlns="http://www.w3.org/2000/svg" width="300" height="300">' >a.svg
for i in $(seq 500); do printf '<circle cx="%d" cy="%d" r="5" filter="blur(2)"/>' $((i % 300)) $((i * 7 % 300)) >>a.svg; done
echo '</svg>' >>a.svg
timeout -k 5 90 $ON inkscape a.svg -o o.png 2>err
R=$?
ls o.png
exit $R
