# git
export GIT_AUTHOR_DATE="2020-01-01T00:00:00Z" GIT_COMMITTER_DATE="2020-01-01T00:00:00Z"
git config --global user.email a@b
git config --global user.name a
$ON git init -q r
cd r
for i in $(seq 30); do
    for j in $(seq 20); do seq $((i * j)) >f$j; done
    $ON git add .
    $ON git commit -qm c$i
done
$ON git gc -q --aggressive
$ON git log --stat | cksum
$ON git fsck
$ON git grep -c 99 | head -2
$ON git clone -q . ../s && ls ../s | wc -l
