# clang
cat >a.cc <<X
#include <bits/stdc++.h>
int main(){std::map<std::string,std::vector<int>> m; for(int i=0;i<100000;i++) m[std::to_string(i%777)].push_back(i); std::cout<<m.size()<<"\n";}
X
$ON clang++ -O2 a.cc -o a && $ON ./a
