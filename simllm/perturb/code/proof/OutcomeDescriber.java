import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.Iterator;
import java.util.Map;
import java.util.stream.BaseStream;

/** Describes values in one line of text. Equal behaviour gives equal text. */
final class OutcomeDescriber {
    private static final int MOST_ITEMS = 1000;
    private static final int LONGEST = 1000;
    private static final int DEEPEST = 6;

    private final String container;

    /** Create a describer that leaves out a package name, since versions of a function differ in it. */
    OutcomeDescriber(String container) {
        this.container = container + ".";
    }

    String text(Object value) {
        return text(value, 0);
    }

    String nameOf(Class<?> type) {
        return type.isHidden() ? "lambda" : type.getName().replace(container, "");
    }

    /** Describe the fields of an object, or the static fields of its class if there is no object. */
    String fields(Class<?> type, Object object) {
        return fields(type, object, 0);
    }

    static String shorten(String text) {
        return text.length() <= LONGEST ? text : text.substring(0, LONGEST) + "... #" + text.hashCode();
    }

    private String text(Object value, int depth) {
        if (value == null) {
            return "null";
        }
        if (depth > DEEPEST) {
            return "...";
        }
        Class<?> type = value.getClass();
        if (type.isArray()) {
            StringBuilder items = new StringBuilder();
            for (int i = 0; i < Math.min(Array.getLength(value), MOST_ITEMS); i++) {
                items.append(i == 0 ? "" : ", ").append(text(Array.get(value, i), depth + 1));
            }
            return "[" + items + (Array.getLength(value) > MOST_ITEMS ? ", ..." : "") + "]";
        }
        if (value instanceof CharSequence || value instanceof Character) {
            return quote(value.toString());
        }
        if (value instanceof Integer || value instanceof Boolean || value instanceof Double) {
            return value.toString();
        }
        if (value instanceof Number && type.getModule().isNamed()) {
            return type.getSimpleName() + " " + value;
        }
        if (value instanceof Map.Entry<?, ?> entry) {
            return text(entry.getKey(), depth + 1) + "=" + text(entry.getValue(), depth + 1);
        }
        if (value instanceof Map<?, ?> map) {
            return items("{", map.entrySet().iterator(), "}", depth);
        }
        if (value instanceof Iterable<?> iterable && type.getModule().isNamed()) {
            return items("[", iterable.iterator(), "]", depth);
        }
        if (value instanceof Iterator<?> iterator && type.getModule().isNamed()) {
            return items("iterator [", iterator, "]", depth);
        }
        if (value instanceof BaseStream<?, ?> stream) {
            return items("stream [", stream.iterator(), "]", depth);
        }
        if (value instanceof Enum<?> || value instanceof Class<?>) {
            return value.toString().replace(container, "");
        }
        if (type.getName().startsWith(container) && !type.isHidden()) {
            return nameOf(type) + fields(type, value, depth + 1);
        }
        return type.isHidden() ? "lambda" : plain(value, type);
    }

    private String plain(Object value, Class<?> type) {
        try {
            boolean described = type.getMethod("toString").getDeclaringClass() != Object.class;
            String text = described ? value.toString() : nameOf(type);
            return quote(text.replaceAll("@[0-9a-f]+", "@").replace(container, ""));
        } catch (NoSuchMethodException impossible) {
            throw new AssertionError(impossible);
        }
    }

    private String items(String before, Iterator<?> iterator, String after, int depth) {
        StringBuilder items = new StringBuilder(before);
        try {
            for (int i = 0; iterator.hasNext(); i++) {
                if (i == MOST_ITEMS) {
                    return items.append(", ...").append(after).toString();
                }
                items.append(i == 0 ? "" : ", ").append(text(iterator.next(), depth + 1));
            }
        } catch (RuntimeException error) {
            return items.append("; throws ").append(nameOf(error.getClass())).append(after).toString();
        }
        return items.append(after).toString();
    }

    private String fields(Class<?> type, Object object, int depth) {
        StringBuilder fields = new StringBuilder("{");
        for (Field field : type.getDeclaredFields()) {
            boolean common = Modifier.isStatic(field.getModifiers());
            if (field.isSynthetic() || object == null && !common) {
                continue;
            }
            try {
                field.setAccessible(true);
                Object value = field.get(object);
                fields.append(fields.length() == 1 ? "" : ", ").append(field.getName()).append(": ");
                fields.append(value == object ? "this" : text(value, depth + 1));
            } catch (ReflectiveOperationException impossible) {
                throw new AssertionError(impossible);
            }
        }
        return fields.append("}").toString();
    }

    private static String quote(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') {
                quoted.append('\\').append(c);
            } else if (c >= ' ' && c < 127) {
                quoted.append(c);
            } else {
                quoted.append(String.format("\\u%04x", (int) c));
            }
        }
        return quoted.append('"').toString();
    }
}
