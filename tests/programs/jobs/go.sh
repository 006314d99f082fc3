# golang-go gcc libc6-dev
mkdir -p m
cd m
cat >a.go <<X
package main
/*
#include <stdlib.h>
#include <string.h>
*/
import "C"
import ("fmt";"sync")
func main(){ var w sync.WaitGroup; for t:=0;t<8;t++{ w.Add(1); go func(){defer w.Done(); for i:=0;i<20000;i++{ p:=C.malloc(C.size_t(i%5000+1)); C.memset(p,1,C.size_t(i%5000+1)); s:=make([]byte,i%1000); _=s; C.free(p)}}()}; w.Wait(); fmt.Println("ok")}
X
cat >go.mod <<X
module a
go 1.20
X
GOFLAGS=-mod=mod GOCACHE=$WORK/c $ON go build -o a . && $ON ./a
