# ghostscript
$ON gs -q -dNOPAUSE -dBATCH -sDEVICE=png16m -r100 -sOutputFile=o.png /usr/share/ghostscript/*/examples/tiger.eps 2>&1 || (
    printf '%%!PS\n/Helvetica findfont 40 scalefont setfont 1 1 200 { 72 exch moveto (hello world) show } for showpage\n' >a.ps
    $ON gs -q -dNOPAUSE -dBATCH -sDEVICE=png16m -r300 -sOutputFile=o.png a.ps
)
ls o.png && cksum <o.png
