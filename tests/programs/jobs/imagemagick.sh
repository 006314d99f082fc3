# imagemagick
$ON convert -size 1200x900 plasma:fractal -seed 1 -blur 0x5 -resize 50% -swirl 90 o.jpg
ls o.jpg
$ON convert -size 500x500 gradient: -rotate 30 o.png
$ON identify -format "%m %w %h" o.png
