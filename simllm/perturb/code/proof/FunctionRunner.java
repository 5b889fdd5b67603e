import java.io.ByteArrayOutputStream;
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
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.TimeUnit;

/** Calls one version of a function (the original, the variant or a mutant) in a thread of its own. */
final class FunctionRunner {
    static final String TIME_UP = "exceeds the time limit";
    static volatile boolean abandoned; // whether a thread could not be ended

    private static final long WAITING = 10; // wall time at most, in units of the processor time
    private static final long STACK_BYTES = 4 << 20;

    private final ProofHarness.Side side;
    private final SynchronousQueue<String> tasks = new SynchronousQueue<>();
    private final SynchronousQueue<String> outcomes = new SynchronousQueue<>();
    private Class<?> type;
    private Executable entry;
    private Thread thread;

    FunctionRunner(ProofHarness.Side side) throws ReflectiveOperationException {
        this.side = side;
        load();
    }

    /** Load the class anew, so that its static fields have their first values. */
    private void load() throws ReflectiveOperationException {
        try {
            URL[] here = {Path.of("classes").toUri().toURL()};
            ClassLoader loader = new URLClassLoader(here, ClassLoader.getPlatformClassLoader());
            type = Class.forName(side.container() + "." + side.type(), true, loader);
        } catch (java.net.MalformedURLException error) {
            throw new AssertionError(error);
        }
        List<Executable> members = new ArrayList<>();
        if (side.entry().equals(side.type())) {
            members.addAll(List.of(type.getDeclaredConstructors()));
        } else {
            members.addAll(List.of(type.getDeclaredMethods()));
        }
        String name = side.entry().equals(side.type()) ? type.getName() : side.entry();
        members.removeIf(member -> !member.getName().equals(name) || member.isSynthetic());
        members.removeIf(member -> member.getParameterCount() != side.parameters().size());
        if (members.size() > 1) {
            members.removeIf(member -> !simpleNames(member).equals(side.parameters()));
        }
        if (members.isEmpty()) {
            throw new NoSuchMethodException(side.entry());
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

    /** End the thread. Newer versions of Java cannot do this; the whole process then ends after this case. */
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
        OutcomeDescriber describer = new OutcomeDescriber(side.container());
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
        return OutcomeDescriber.shorten(text.toString());
    }
}
