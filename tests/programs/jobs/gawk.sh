# gawk
$ON gawk 'BEGIN{for(i=0;i<500000;i++)a[i%70000]=a[i%70000] i; n=0; for(k in a)n+=length(a[k]); print n}'
