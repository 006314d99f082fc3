# ffmpeg
$ON ffmpeg -v error -f lavfi -i testsrc=duration=4:size=640x480:rate=25 -f lavfi -i sine=duration=4 -c:v libx264 -threads 4 -c:a aac o.mp4 && $ON ffmpeg -v error -i o.mp4 -c:v libvpx-vp9 -b:v 300k -threads 4 -t 1 o.webm && $ON ffprobe -v error -show_entries format=nb_streams o.webm
$ON ffmpeg -v error -i o.mp4 -c:v libx265 -x265-params log-level=error -t 1 o.mkv
