# pandoc
for i in $(seq 300); do printf '# H%d\n\n* a\n* b **c**\n\n|a|b|\n|-|-|\n|1|2|\n\n' $i; done >a.md
$ON pandoc a.md -o a.docx && $ON pandoc a.docx -t html | cksum
