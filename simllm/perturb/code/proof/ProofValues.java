import java.lang.reflect.Array;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.*;

/**
 * Reads values that java_inputs.py has written.
 *
 * A value is `null`, or `TYPE:TEXT`, or `TYPE LENGTH` and then as many values. Spaces stand between the words.
 */
final class ProofValues {
    private static final Map<String, Class<?>> CLASSES = Map.of("boolean", boolean.class, "byte", byte.class,
            "short", short.class, "char", char.class, "int", int.class, "long", long.class,
            "float", float.class, "double", double.class);

    private final Iterator<String> words;

    private ProofValues(Iterator<String> words) {
        this.words = words;
    }

    static Object[] decode(String text) {
        ProofValues values = new ProofValues(List.of(text.split(" ")).iterator());
        List<Object> arguments = new ArrayList<>();
        while (!text.isEmpty() && values.words.hasNext()) {
            arguments.add(values.next());
        }
        return arguments.toArray();
    }

    private Object next() {
        String word = words.next();
        int colon = word.indexOf(':');
        if (word.equals("null")) {
            return null;
        }
        return colon < 0 ? container(word) : scalar(word.substring(0, colon), word.substring(colon + 1));
    }

    private static Object scalar(String type, String text) {
        return switch (type) {
            case "boolean" -> Boolean.valueOf(text);
            case "byte" -> Byte.valueOf(text);
            case "short" -> Short.valueOf(text);
            case "char" -> (char) Integer.parseInt(text);
            case "int" -> Integer.valueOf(text);
            case "long" -> Long.valueOf(text);
            case "float" -> Float.valueOf(text);
            case "double" -> Double.valueOf(text);
            case "BigInteger" -> new BigInteger(text);
            case "BigDecimal" -> new BigDecimal(text);
            case "Random" -> new Random(Long.parseLong(text));
            default -> textual(type, URLDecoder.decode(text, StandardCharsets.UTF_8));
        };
    }

    private static Object textual(String type, String text) {
        return switch (type) {
            case "String" -> text;
            case "StringBuilder" -> new StringBuilder(text);
            case "StringBuffer" -> new StringBuffer(text);
            default -> throw new IllegalArgumentException(type);
        };
    }

    private Object container(String type) {
        int length = Integer.parseInt(words.next());
        if (type.endsWith("[]")) {
            Object array = Array.newInstance(classOf(type.substring(0, type.length() - 2)), length);
            for (int i = 0; i < length; i++) {
                Array.set(array, i, next());
            }
            return array;
        }
        if (type.endsWith("Map")) {
            Map<Object, Object> map = switch (type) {
                case "HashMap" -> new HashMap<>();
                case "TreeMap" -> new TreeMap<>();
                default -> new LinkedHashMap<>();
            };
            for (int i = 0; i < length; i++) {
                map.put(next(), next());
            }
            return map;
        }
        List<Object> items = new ArrayList<>();
        for (int i = 0; i < length; i++) {
            items.add(next());
        }
        return switch (type) {
            case "ArrayList" -> items;
            case "LinkedList" -> new LinkedList<>(items);
            case "Vector" -> new Vector<>(items);
            case "Stack" -> {
                Stack<Object> stack = new Stack<>();
                stack.addAll(items);
                yield stack;
            }
            case "ArrayDeque" -> new ArrayDeque<>(items);
            case "PriorityQueue" -> new PriorityQueue<>(items);
            case "HashSet" -> new HashSet<>(items);
            case "LinkedHashSet" -> new LinkedHashSet<>(items);
            case "TreeSet" -> new TreeSet<>(items);
            case "Iterator" -> items.iterator();
            case "Optional" -> items.stream().findFirst();
            case "Comparator" -> Comparator.naturalOrder();
            default -> throw new IllegalArgumentException(type);
        };
    }

    private static Class<?> classOf(String name) {
        if (name.endsWith("[]")) {
            return Array.newInstance(classOf(name.substring(0, name.length() - 2)), 0).getClass();
        }
        if (CLASSES.containsKey(name)) {
            return CLASSES.get(name);
        }
        for (String container : List.of("java.lang.", "java.util.", "java.math.")) {
            try {
                return Class.forName(container + name);
            } catch (ClassNotFoundException error) {
                // in another package
            }
        }
        return Object.class;
    }
}
