# lua5.4
$ON lua5.4 -e 'local t={} for i=1,1000000 do t[i%5000]={i,tostring(i)} end collectgarbage() print(#t)'
