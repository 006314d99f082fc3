# octave
$ON octave --no-gui --eval 'a=rand(300); b=a*inv(a); printf("%d\n",round(trace(b))); c=cell(1,20000); for i=1:20000 c{i}=zeros(1,mod(i,100)); end; printf("%d\n",numel(c)); x=regexprep(repmat("ab",1,10000),"a","cc"); printf("%d\n",numel(x));'
