# gfortran
cat >a.f90 <<X
program a
 real, allocatable :: x(:), y(:)
 integer i
 do i=1,2000
  allocate(x(i*100)); x=i; allocate(y(size(x))); y=x*2; if (i==2000) print *, sum(y)/size(y); deallocate(x,y)
 end do
end program
X
$ON gfortran -O2 -fopenmp a.f90 -o a && $ON ./a
