# Hashes, strings, regular expressions, sorting, closures and cloned interpreters (threads); the same
# output each time.  PERL_HASH_SEED does not matter: nothing is printed in hash order.
use strict;
use warnings;
use threads;
use Digest::SHA qw(sha256_hex);

sub work {
    my ($seed) = @_;
    my $state = $seed;
    my $next = sub { $state = ($state * 1103515245 + 12345) % 2147483648; return $state };
    my (%count, %tree, @lines);
    for my $i (1 .. 60_000) {
        my $word = sprintf("w%05x", $next->() % 20_000);
        $count{$word}++;
        push @{ $tree{ substr($word, 0, 3) }{$word} }, $i;
        push @lines, "$i: $word " . ("x" x ($next->() % 200)) if $i % 7 == 0;
    }
    my $text = join("\n", @lines);
    my $found = () = $text =~ /^\d+: (w[0-9a-f]*[aeiou]?\d+) x{5,50}$/mg;
    $text =~ s/(w[0-9a-f]+)/<$1:@{[ length $1 ]}>/g;
    my @sorted = sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;
    my @chains = map { my $w = $_; sub { return $w . shift } } @sorted[0 .. 999];
    my $built = "";
    $built .= $_->("!") for @chains;
    delete $tree{$_} for grep { /[02468]$/ } keys %tree;
    my $left = 0;
    $left += scalar keys %$_ for values %tree;
    return join(" ", $seed, $found, scalar(@sorted), $left, sha256_hex($text), sha256_hex($built));
}

print work(1), "\n";
my @threads = map { threads->create(\&work, $_) } 2 .. 4;
print $_->join(), "\n" for @threads;
