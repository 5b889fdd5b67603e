import java.io.ByteArrayInputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Runs functions and their variants on the same inputs.
 *
 * The file cases.txt has these lines, with tabs between the fields: `case NUMBER`, then
 * `side SIDE PACKAGE CLASS ENTRY PARAMETERS` for the original and each variant, then `input LARGE VALUES`, then `run`.
 * A side is a version of a function: the original, the variant or a mutant (a variant with a mistake).
 * The outcomes are written to standard output, each line with the word in key.txt; harness_results.py describes them.
 */
public final class ProofHarness {
    private static final long ORIGINAL_NANOS = 25_000_000L; // processor time of a call
    private static final long VARIANT_NANOS = 1_000_000_000L;
    private static final long MUTANT_NANOS = 100_000_000L;
    private static final int MOST_TIME_UPS = 10; // then no more inputs are tried
    private static final Set<String> OWN_THREADS = Set.of("main", "function");

    private static final int OWN_PROCESSES = 1; // the sandbox hides its first process

    private static PrintStream results;
    private static String key;

    record Side(int number, String container, String type, String entry, List<String> parameters) {}

    record Input(boolean large, String values) {}

    public static void main(String[] args) throws Exception {
        results = new PrintStream(new FileOutputStream(FileDescriptor.out), true, "UTF-8");
        System.setOut(new PrintStream(OutputStream.nullOutputStream()));
        Path file = Path.of("key.txt");
        key = Files.readString(file);
        Files.delete(file); // the functions do not learn it by chance
        System.setErr(new PrintStream(OutputStream.nullOutputStream()));
        System.setIn(new ByteArrayInputStream(new byte[0]));
        int number = 0;
        List<Side> sides = new ArrayList<>();
        List<Input> inputs = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of("cases.txt"))) {
            String[] fields = line.split("\t", -1);
            switch (fields[0]) {
                case "case" -> {
                    number = Integer.parseInt(fields[1]);
                    sides.clear();
                    inputs.clear();
                }
                case "side" -> sides.add(new Side(
                        Integer.parseInt(fields[1]), fields[2], fields[3], fields[4], words(fields[5])));
                case "input" -> inputs.add(new Input(fields[1].equals("1"), fields[2]));
                default -> runCase(number, sides, inputs);
            }
        }
        Runtime.getRuntime().halt(0); // does not wait for threads that the functions have started
    }

    private static List<String> words(String text) {
        return text.isEmpty() ? List.of() : List.of(text.split(" "));
    }

    private static void write(Object... fields) {
        StringBuilder line = new StringBuilder("\n").append(key); // a function may have written half a line
        for (Object field : fields) {
            line.append('\t').append(field);
        }
        results.print(line.append('\n'));
    }

    private static void runCase(int number, List<Side> sides, List<Input> inputs) throws Exception {
        write("begin", number);
        Map<Integer, String> expected = new HashMap<>();
        try {
            runOriginal(number, sides.get(0), inputs, expected);
            for (Side side : sides.subList(1, sides.size())) {
                write("side", number, side.number());
                FunctionRunner runner = new FunctionRunner(side);
                long nanos = side.number() == 1 ? VARIANT_NANOS : MUTANT_NANOS;
                for (int i = 0; i < inputs.size(); i++) {
                    if (expected.containsKey(i)) {
                        String outcome = runner.call(inputs.get(i).values(), nanos);
                        write("outcome", number, side.number(), i, outcome);
                        if (!outcome.equals(expected.get(i))) {
                            break;
                        }
                    }
                }
                runner.end();
            }
        } catch (ReflectiveOperationException | LinkageError error) {
            write("error", number, error.getClass().getSimpleName() + " while the class is loaded");
        }
        write("end", number);
        if (FunctionRunner.abandoned || leavesThreads() || ProcessHandle.allProcesses().count() > OWN_PROCESSES) {
            Runtime.getRuntime().halt(0); // endless threads and processes would disturb the next functions
        }
    }

    /** Return whether a thread that a function has started still runs, apart from daemon threads. */
    private static boolean leavesThreads() {
        Thread[] threads = new Thread[Thread.activeCount() + 16];
        int count = Thread.enumerate(threads);
        for (int i = 0; i < count; i++) {
            if (!threads[i].isDaemon() && !OWN_THREADS.contains(threads[i].getName())) {
                return true;
            }
        }
        return false;
    }

    private static void runOriginal(int number, Side side, List<Input> inputs, Map<Integer, String> expected)
            throws Exception {
        FunctionRunner first = new FunctionRunner(side);
        FunctionRunner second = new FunctionRunner(side);
        int timeUps = 0;
        write("side", number, 0);
        for (int i = 0; i < inputs.size(); i++) {
            Input input = inputs.get(i);
            if (timeUps == MOST_TIME_UPS) {
                break;
            }
            if (timeUps > 0 && input.large()) {
                continue;
            }
            String outcome = first.call(input.values(), ORIGINAL_NANOS);
            if (leavesThreads()) {
                write("left", number, "leaves threads behind");
                break;
            } else if (outcome.equals(FunctionRunner.TIME_UP)) {
                timeUps++;
                write("left", number, FunctionRunner.TIME_UP);
            } else if (outcome.startsWith("throws java.lang.OutOfMemoryError")) {
                write("left", number, "needs much memory");
            } else if (!outcome.equals(second.call(input.values(), VARIANT_NANOS))) {
                write("left", number, "two calls of the original differ");
            } else {
                expected.put(i, outcome);
                write("outcome", number, 0, i, outcome);
            }
        }
        first.end();
        second.end();
    }
}
