# chromium
echo '<html><body><script>let a=[];for(let i=0;i<200000;i++)a.push({i,s:"x".repeat(i%50)});document.write(a.length);let c=document.createElement("canvas");c.width=500;c.height=500;document.body.append(c);c.getContext("2d").fillRect(0,0,99,99);</script></body></html>' >a.html
timeout -k 5 60 $ON chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir=$WORK/u --dump-dom file://$WORK/a.html 2>err
R=$?
timeout -k 5 60 $ON chromium --headless --no-sandbox --disable-gpu --user-data-dir=$WORK/u --screenshot=$WORK/o.png file://$WORK/a.html 2>err
ls o.png
exit $R
