# mono-mcs mono-runtime
printf 'using System; using System.Collections.Generic; using System.Threading.Tasks; class A { static void Main(){ var d=new Dictionary<string,byte[]>(); for(int i=0;i<100000;i++) d["k"+i%%5000]=new byte[i%%3000]; Parallel.For(0,100,i=>{ var l=new List<int>(); for(int j=0;j<10000;j++) l.Add(j);}); Console.WriteLine(d.Count);} }' >a.cs
$ON mcs a.cs && $ON mono a.exe
