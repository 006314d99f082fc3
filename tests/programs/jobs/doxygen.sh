# doxygen
printf '/** f. */ int f(int); /** s */ struct s { int a; /**< a */ };\n' >a.h
$ON doxygen -g >/dev/null && $ON doxygen >/dev/null 2>&1
ls html | wc -l
