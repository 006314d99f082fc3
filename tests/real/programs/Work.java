import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import java.util.zip.CRC32;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

/** What reaches malloc in a Java program: the compilers' arenas, direct buffers, zlib's state, threads' stacks'
 *  bookkeeping.  Prints the same output each time. */
public final class Work {
    private static final int THREADS = 4;
    private static final int TASKS = 40;
    private static final Pattern WORD = Pattern.compile("([a-f]+)(\\d+)");

    public static void main(String[] arguments) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(THREADS);
        List<Future<Long>> results = new ArrayList<>();
        for (int task = 0; task < TASKS; task++) {
            int seed = task;
            results.add(pool.submit(() -> work(seed)));
        }
        for (Future<Long> result : results) {
            System.out.println(Long.toHexString(result.get()));
        }
        pool.shutdown();
    }

    private static long work(int seed) throws Exception {
        Random source = new Random(seed);
        CRC32 sum = new CRC32();
        for (int round = 0; round < 10; round++) {
            byte[] plain = text(source).getBytes("UTF-8");
            sum.update(roundTrip(plain, 1 + source.nextInt(9)));
            ByteBuffer direct = ByteBuffer.allocateDirect(1 + source.nextInt(2_000_000));
            while (direct.hasRemaining()) {
                direct.put((byte) direct.position());
            }
            direct.flip();
            sum.update(direct);
        }
        return sum.getValue();
    }

    private static String text(Random source) {
        StringBuilder text = new StringBuilder();
        IntStream.range(0, 2000).forEach(i -> text.append(Integer.toHexString(source.nextInt())).append(' '));
        return WORD.matcher(text).replaceAll(match -> match.group(2) + match.group(1).toUpperCase());
    }

    private static byte[] roundTrip(byte[] plain, int level) throws Exception {
        Deflater deflater = new Deflater(level);
        deflater.setInput(plain);
        deflater.finish();
        byte[] packed = new byte[plain.length + 1000];
        int packedLength = deflater.deflate(packed);
        deflater.end();
        Inflater inflater = new Inflater();
        inflater.setInput(packed, 0, packedLength);
        byte[] back = new byte[plain.length];
        if (inflater.inflate(back) != plain.length || !java.util.Arrays.equals(back, plain)) {
            throw new IllegalStateException("inflate differs");
        }
        inflater.end();
        return java.util.Arrays.copyOf(packed, packedLength);
    }
}
