# gdb gcc libc6-dev
printf 'int f(int x){return x*2;} int main(){return f(3);}' >a.c
gcc -g a.c -o a
env -u LD_PRELOAD $ON gdb -q -batch -ex 'b f' -ex run -ex bt -ex 'python print(len([str(i) for i in range(100000)]))' -ex c ./a 2>&1 | grep -v "libthread\|Breakpoint\|process\|warning"
$ON gdb -q -batch -ex 'info functions malloc' $(which gdb) 2>&1 | wc -l
