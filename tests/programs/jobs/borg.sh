# borgbackup restic
export BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK=yes
$ON borg init -e none r 2>>err
$ON borg create r::a /usr/share/doc/b* && $ON borg check r && $ON borg list r | wc -l
export RESTIC_PASSWORD=x
$ON restic -q init -r q && $ON restic -q backup -r q /usr/share/doc/c* && $ON restic -q check -r q
echo $?
