# swi-prolog-nox
$ON swipl -g 'numlist(1,200000,L),maplist([X,Y]>>(atom_number(A,X),atom_concat(A,b,Y)),L,M),length(M,N),writeln(N),findall(I,(member(I,[1,2,3,4])),Q),concurrent_maplist([P,R]>>(numlist(1,50000,Z),sum_list(Z,S),R is S+P),Q,RR),writeln(RR),halt'
