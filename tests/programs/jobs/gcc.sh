# g++
cat >a.cc <<X
#include <bits/stdc++.h>
#include <regex>
int main(){std::map<std::string,std::vector<int>> m; for(int i=0;i<100000;i++) m[std::to_string(i%777)].push_back(i); std::regex r("a+b"); std::cout<<m.size()<<std::regex_match("aab",r)<<"\n";}
X
$ON g++ -O2 -flto a.cc -o a && $ON ./a
