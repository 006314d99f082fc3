# openmpi-bin libopenmpi-dev
printf '#include <mpi.h>\n#include <stdlib.h>\n#include <stdio.h>\nint main(int c,char**v){MPI_Init(&c,&v);int r,n=100000;MPI_Comm_rank(MPI_COMM_WORLD,&r);double*a=malloc(8*n),*b=malloc(8*n);for(int k=0;k<20;k++){for(int i=0;i<n;i++)a[i]=r;MPI_Allreduce(a,b,n,MPI_DOUBLE,MPI_SUM,MPI_COMM_WORLD);}if(!r)printf("%%g\\n",b[0]);free(a);free(b);MPI_Finalize();}' >a.c
$ON mpicc a.c -o a && $ON mpirun --allow-run-as-root --oversubscribe -n 4 ./a 2>err
