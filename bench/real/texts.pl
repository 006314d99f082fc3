# Texts for perl: texts.pl ROUNDS.  Strings grow by pieces, are cut, matched, substituted, sorted and joined.
use strict;
use warnings;

my $state = 4711;
sub random { $state = ($state * 1103515245 + 12345) & 0x7fffffff; return $state % $_[0]; }

my ($page, %seen, @drafts) = ('');
for my $round (1 .. $ARGV[0]) {
    $page .= join(' ', map { chr(97 + random(26)) x (1 + random(12)) } 1 .. 8) . (random(9) ? ' ' : "\n") for 1 .. 2500;
    (my $other = $page) =~ s/([a-m])\1{2,}/<$1>/g;
    my @paragraphs = map { ucfirst lc } split /\n/, $other;
    for my $paragraph (@paragraphs) {
        push @{ $seen{ length $1 } }, $1 while $paragraph =~ /\b(\w{3,9})\b/g;
        substr($paragraph, 0, 1) = sprintf '%04d: ', random(10000);
    }
    push @drafts, join("\n", sort @paragraphs);
    shift @drafts if @drafts > 5;
    $page = substr $page, -40000;
    splice @$_, 0, @$_ / 2 for values %seen;
}
print length(join '', @drafts), "\n";
