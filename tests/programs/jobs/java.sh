# default-jdk-headless
cat >A.java <<X
import java.util.*; import java.util.concurrent.*; import java.util.zip.*;
class A { public static void main(String[] a) throws Exception { ExecutorService e=Executors.newFixedThreadPool(8); List<Future<Integer>> l=new ArrayList<>(); for(int t=0;t<16;t++) l.add(e.submit(()->{ int n=0; for(int i=0;i<200;i++){ Deflater d=new Deflater(); d.setInput(new byte[50000]); d.finish(); byte[] o=new byte[60000]; n+=d.deflate(o); d.end(); java.nio.ByteBuffer.allocateDirect(100000);} return n;})); for(var f:l) System.out.println(f.get()); e.shutdown(); } }
X
$ON javac A.java && $ON java -XX:NativeMemoryTracking=summary A && $ON java -XX:+UseZGC A && $ON java -XX:+UseSerialGC A
