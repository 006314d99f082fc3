# php-cli
$ON php -r '$a=[];for($i=0;$i<300000;$i++){$a[]=str_repeat(chr(65+$i%26),$i%200);if($i%3==0)unset($a[intdiv($i,2)]);}echo count($a)," ",md5(implode($a)),"\n"; echo md5(serialize($a)),"\n";' && USE_ZEND_ALLOC=0 $ON php -r '$a=[];for($i=0;$i<100000;$i++){$a["k$i"]=["x"=>$i];} echo count($a);'
