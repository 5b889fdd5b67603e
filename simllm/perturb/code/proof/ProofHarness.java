import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.TimeUnit;

/**
 * Runs functions and their variants on the same inputs.
 *
 * The file cases.txt has these lines, with tabs between the fields: `case NUMBER`, then
 * `side SIDE PACKAGE CLASS ENTRY PARAMETERS` for the original and each variant, then `input LARGE VALUES`, then `run`.
 * The file results.txt has the outcomes; harness_results.py says how.
 */
public final class ProofHarness {
    private static final long ORIGINAL_NANOS = 25_000_000L; // processor time of a call
    private static final long VARIANT_NANOS = 1_000_000_000L;
    private static final long TWIN_NANOS = 100_000_000L;
    private static final long WAITING = 20; // wall time at most, in units of the processor time
    private static final int MOST_TIME_UPS = 10; // then no more inputs are tried
    private static final long STACK_BYTES = 4 << 20;
    private static final Set<String> OWN_THREADS = Set.of("main", "function");
    private static final String TIME_UP = "exceeds the time limit";

    private static PrintStream results;

    record Side(int number, String container, String type, String entry, List<String> parameters) {}

    record Input(boolean large, String values) {}

    public static void main(String[] args) throws Exception {
        results = new PrintStream(Files.newOutputStream(Path.of("results.txt")), true, "UTF-8");
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
        StringBuilder line = new StringBuilder();
        for (Object field : fields) {
            line.append(line.length() == 0 ? "" : "\t").append(field);
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
                Runner runner = new Runner(side);
                long nanos = side.number() == 1 ? VARIANT_NANOS : TWIN_NANOS;
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
        if (Runner.abandoned || leavesThreads()) {
            Runtime.getRuntime().halt(0); // an endless thread would disturb the next functions
        }
    }

    /** Return whether there is a thread that a function has started, apart from those of Java's own pools. */
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
        Runner first = new Runner(side);
        Runner second = new Runner(side);
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
            } else if (outcome.equals(TIME_UP)) {
                timeUps++;
                write("left", number, TIME_UP);
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

    /** Calls one side, in a thread of its own. */
    private static final class Runner {
        static volatile boolean abandoned; // whether a thread could not be ended

        private final Side side;
        private final SynchronousQueue<String> tasks = new SynchronousQueue<>();
        private final SynchronousQueue<String> outcomes = new SynchronousQueue<>();
        private Class<?> type;
        private Executable entry;
        private Thread thread;

        Runner(Side side) throws ReflectiveOperationException {
            this.side = side;
            load();
        }

        /** Load the class anew, so that its static fields have their first values. */
        private void load() throws ReflectiveOperationException {
            try {
                URL[] here = {Path.of("classes").toUri().toURL()};
                ClassLoader loader = new URLClassLoader(here, ClassLoader.getPlatformClassLoader());
                type = Class.forName(side.container + "." + side.type, true, loader);
            } catch (java.net.MalformedURLException error) {
                throw new AssertionError(error);
            }
            List<Executable> members = new ArrayList<>();
            if (side.entry.equals(side.type)) {
                members.addAll(List.of(type.getDeclaredConstructors()));
            } else {
                members.addAll(List.of(type.getDeclaredMethods()));
            }
            String name = side.entry.equals(side.type) ? type.getName() : side.entry;
            members.removeIf(member -> !member.getName().equals(name) || member.isSynthetic());
            members.removeIf(member -> member.getParameterCount() != side.parameters.size());
            if (members.size() > 1) {
                members.removeIf(member -> !simpleNames(member).equals(side.parameters));
            }
            if (members.isEmpty()) {
                throw new NoSuchMethodException(side.entry);
            }
            entry = members.get(0);
            entry.setAccessible(true);
        }

        private static List<String> simpleNames(Executable member) {
            List<String> names = new ArrayList<>();
            for (Class<?> parameter : member.getParameterTypes()) {
                names.add(parameter.getSimpleName());
            }
            return names;
        }

        private boolean hasState() {
            for (Field field : type.getDeclaredFields()) {
                boolean constant = Modifier.isFinal(field.getModifiers())
                        && (field.getType().isPrimitive() || field.getType() == String.class);
                if (Modifier.isStatic(field.getModifiers()) && !constant) {
                    return true;
                }
            }
            return false;
        }

        String call(String values, long nanos) throws Exception {
            if (hasState()) {
                load();
            }
            if (thread == null) {
                thread = new Thread(null, this::work, "function", STACK_BYTES);
                thread.start();
            }
            var clock = ManagementFactory.getThreadMXBean();
            long spent = clock.getThreadCpuTime(thread.getId());
            long begun = System.nanoTime();
            tasks.put(values);
            String outcome = outcomes.poll(nanos, TimeUnit.NANOSECONDS);
            while (outcome == null && System.nanoTime() - begun < WAITING * nanos
                    && clock.getThreadCpuTime(thread.getId()) - spent < nanos) {
                outcome = outcomes.poll(nanos / 10, TimeUnit.NANOSECONDS);
            }
            if (outcome == null) {
                end();
                return TIME_UP;
            }
            return outcome;
        }

        /** End the thread; a newer Java can not do that, and then the whole process ends after this case. */
        @SuppressWarnings({"deprecation", "removal"})
        void end() throws InterruptedException {
            if (thread == null) {
                return;
            }
            Thread ended = thread;
            thread = null;
            ended.interrupt();
            ended.join(1);
            if (ended.isAlive()) {
                try {
                    ended.stop();
                    ended.join(200);
                } catch (UnsupportedOperationException error) {
                    // still alive
                }
                abandoned |= ended.isAlive();
            }
        }

        private void work() {
            try {
                while (true) {
                    outcomes.put(outcome(tasks.take()));
                }
            } catch (InterruptedException | ThreadDeath end) {
                // the thread is not needed any more
            }
        }

        private String outcome(String values) {
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            System.setOut(new PrintStream(printed, true));
            Object[] arguments = ProofValues.decode(values);
            Describer describer = new Describer(side.container);
            StringBuilder text = new StringBuilder();
            Object instance = null;
            try {
                Object result;
                if (entry instanceof Constructor<?> constructor) {
                    instance = constructor.newInstance(arguments);
                    result = null;
                } else {
                    Constructor<?> constructor = type.getDeclaredConstructor();
                    constructor.setAccessible(true);
                    instance = constructor.newInstance();
                    result = ((Method) entry).invoke(instance, arguments);
                }
                text.append("returns ").append(result == instance ? "this" : describer.text(result));
            } catch (ThreadDeath end) {
                throw end;
            } catch (InvocationTargetException error) {
                if (error.getCause() instanceof ThreadDeath end) {
                    throw end;
                }
                text.append("throws ").append(describer.nameOf(error.getCause().getClass()));
            } catch (Throwable error) {
                text.append("throws ").append(describer.nameOf(error.getClass()));
            }
            text.append("; arguments ").append(describer.text(arguments));
            text.append("; fields ").append(describer.fields(type, instance));
            System.out.flush();
            if (printed.size() > 0) {
                text.append("; prints ").append(describer.text(printed.toString()));
            }
            return Describer.shorten(text.toString());
        }
    }
}
