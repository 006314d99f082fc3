# firefox-esr
echo '<html><body><script>let a=[];for(let i=0;i<200000;i++)a.push({i});document.write(a.length)</script></body></html>' >a.html
mkdir p
MOZ_DISABLE_CONTENT_SANDBOX=1 timeout -k 5 100 $ON firefox-esr --headless --profile $WORK/p --screenshot $WORK/o.png file://$WORK/a.html 2>err >&2
R=$?
ls o.png
exit $R
