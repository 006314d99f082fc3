# A job for perl, heavy in hashes, arrays and strings: hashes.pl ROUNDS.
use strict;
use warnings;

my $state = 12345;
sub random { $state = ($state * 1103515245 + 12345) & 0x7fffffff; return $state % $_[0]; }

my (%index, @kept);
for my $round (1 .. $ARGV[0]) {
    my @lines = map { join ' ', map { 'word' . random(20000) } 1 .. 3 + random(12) } 1 .. 2000;
    my %count;
    for my $line (@lines) {
        my @words = split / /, $line;
        $count{$_}++ for @words;
        push @{ $index{ $words[0] } }, { line => $line, words => \@words, round => $round };
    }
    push @kept, { %count };
    shift @kept if @kept > 4;
    my @common = (sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count)[0 .. 99];
    s/word(\d+)/sprintf 'w%07d', $1/ge for @common;
    for my $word (keys %index) {
        delete $index{$word} if $index{$word}[0]{round} < $round - 4;
    }
}
print scalar(keys %index), "\n";
