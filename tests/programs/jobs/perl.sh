# perl
$ON perl -Mthreads -e 'my %h; $h{$_}="x"x($_%500) for 1..200000; delete $h{$_} for grep {$_%2} keys %h; print scalar(keys %h),"\n"; my @t=map{threads->create(sub{my @a=map{"y"x$_}1..2000; scalar @a})}1..4; print $_->join,"\n" for @t;'
