# r-base-core
$ON R --vanilla --slave -e 'set.seed(1); a<-matrix(rnorm(250000),500); print(dim(solve(a)%*%a)); l<-lapply(1:50000,function(i) rep("x",i%%50)); print(length(unlist(l))); gc()->g; library(parallel); print(unlist(mclapply(1:4,function(i) sum(rnorm(1e5)>9),mc.cores=2)))'
