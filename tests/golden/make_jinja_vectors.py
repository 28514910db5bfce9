#!/usr/bin/env python3
"""Writes jinja-cases.json: what Jinja2 renders, in the environment that transformers makes for chat templates.

    pip install transformers==5.23.0 jinja2==3.1.6
    tests/golden/make_jinja_vectors.py

Each case is a template with either its text or, where Jinja2 raised, an error; the variables are the same for all.
"""

import json
import pathlib

from transformers.utils.chat_template_utils import _compile_jinja_template

OUT = pathlib.Path(__file__).parent / "jinja-cases.json"
VARIABLES = {
    "s": "  Hello, World \n",
    "word": "straße",
    "mixed": "ǆ ŉ ΑΣ ΣΑΣ. iİI ß",
    "quotes": "it's \"so\" \\ \t é \u200b 🙂",
    "lines": "one\ntwo\r\n\nfour\u2028five",
    "csv": "a,b,,c",
    "empty": "",
    "n": 7,
    "x": 2.5,
    "yes": True,
    "nothing": None,
    "list": [3, 1, 2],
    "words": ["pear", "Apple", "fig", "apple"],
    "d": {"b": 1, "a": [1, {"k": "v"}], "items": "shadow", "C": None},
    "people": [{"name": "Bo", "age": 30, "in": {"x": 1}}, {"name": "al", "age": 20}, {"name": "Cy", "age": 30}],
    "messages": [{"role": "user", "content": "q <|im_end|>"}, {"role": "assistant", "content": "a"}],
}

# One template per line, grouped by topic.
EXPRESSIONS = r"""
1 + 2 * 3 - 4 / 2
7 // 2 ~ ' ' ~ -7 // 2 ~ ' ' ~ 7 % 3 ~ ' ' ~ -7 % 3 ~ ' ' ~ 7.5 % -2
2 ** 3 ** 2
-2 ** 2
2 ** -1
1 / 0
1.0 // 0.0
10 ** 3 ~ ' ' ~ 1e3 ~ ' ' ~ 1e16 ~ ' ' ~ 1e-5 ~ ' ' ~ 0.0001 ~ ' ' ~ 123456789.125 ~ ' ' ~ 1e100 ~ ' ' ~ 1_000
5 is odd
1 < 2 < 3
1 < 3 < 2
1 == 1.0 == true
'a' < 'b' <= 'b'
'a' < 1
[1, 2] < [1, 3]
nothing < 1
not yes or n
n and 0 or 'z'
'' or nothing or 'last'
missing
missing.attribute
missing['x']
missing + 1
missing ~ 'x'
missing == other
missing is defined
missing or 'x'
missing|default('d')
nothing|default('d')
nothing|default('d', true)
empty|d('e', boolean=true)
missing|length
missing|list
missing|first
missing|upper
'x' in missing
missing in 'x'
missing in [1]
d.b ~ d['b'] ~ d.get('b') ~ d.get('zz') ~ d.get('zz', 5)
d.items
d['items']
d.items()
d.keys() ~ d.values()
d.zz
d.zz.y
d['a'][1].k
d.a.1.k
d.a[-1]['k']
d.a[5]
d.a[5] is defined
d.a['x']
d.a.x.y
d.a[1.5] is defined
d.pop('b')
d.pop is defined
d.update({'x': 1})
d.setdefault
list.append(4)
list.index(1) ~ list.count(2)
list.index(9)
list.sort()
list.copy()
nothing.x
nothing.x is undefined
nothing['x'] is undefined
n.x is undefined
nothing[1:]
n[0] is undefined
word[0] ~ word[-1] ~ word[4] ~ word[1:3] ~ word[::-1] ~ word[::2] ~ word[-3:] ~ word[:-2] ~ word[10:]
word[99] is undefined
list[::-1] ~ list[1:] ~ list[:-1] ~ list[5:] ~ list[::2] ~ list[-1:0:-1] ~ list[:1:-1]
list[::0]
list['a':]
(1, 2, 3)[1:] ~ (1,) ~ () ~ (1)
range(3)|list ~ range(2, 5)|list ~ range(5, 0, -2)|list ~ range(0)|list
range(200000)|list
range(5)[1:3]|list ~ range(5)[2] ~ range(5)|length
'abc' in 'xabcx' ~ ('b' in d) ~ (3 in list) ~ (9 not in list) ~ ('' in '')
1 in 'abc'
'a' in 5
'a' if yes
'a' if not yes
('a' if not yes) is defined
'a' if not yes else 'b' if nothing else 'c'
'a' 'b' "c"
'\n\t\\\'\"\x41\u00e9\101\z' "\é"
"a\
b"
[1, 'a', none, true, 1.5, [2], {'k': 'v'}, (1,), missing]
{'a': 1, 'b': {'c': []}, 1: 2, 'a': 3}
{[1]: 2}
quotes
[quotes]
[lines, word, "it's", 'say "x"', "both ' and \""]
s|trim ~ '|' ~ s|trim(' \n') ~ '|' ~ 'xxaxx'|trim('x') ~ '|' ~ s.lstrip() ~ '|' ~ s.rstrip() ~ '|' ~ s.strip('\n H') ~ '|'
s|upper ~ s|lower ~ s|capitalize ~ s|title
mixed|upper
mixed|lower
mixed|capitalize
mixed|title
word.upper() ~ word.capitalize() ~ 'ABC'.lower()
'ὈΔΥΣΣΕΎΣ'.lower() ~ 'Σ' ~ 'Σ'.lower() ~ 'ΑΣ'.lower()
'hello-world foo(bar {baz [q <z'|title
csv.split(',')
csv.split(',', 1) ~ csv.split(',', maxsplit=2) ~ csv.rsplit(',', 1) ~ csv.rsplit(',')
csv.split('')
s.split() ~ '  a b  c '.split(none, 1) ~ ''.split() ~ ''.split(',')
csv.partition(',') ~ csv.rpartition(',') ~ csv.partition('zz')
lines.splitlines() ~ lines.splitlines(true) ~ ''.splitlines()
csv.replace(',', ';') ~ csv.replace(',', ';', 1) ~ csv.replace('', '-') ~ csv|replace(',', 1) ~ csv|replace(',', '', 2)
'aaa'|replace('a', 'b', 2) ~ 'aaa'|replace('', '.') ~ 'aaa'.replace('aa', 'x')
'abc'.startswith('ab') ~ 'abc'.endswith('bc') ~ 'abc'.startswith(('x', 'a')) ~ 'abc'.endswith('')
'abc'.startswith(1)
'abc'.find('c') ~ 'straße'.find('e') ~ 'abc'.find('z') ~ 'abcabc'.rfind('b') ~ 'abcabc'.count('b') ~ 'abc'.index('b')
'abc'.index('z')
'-'.join(['a', 'b']) ~ ','.join('abc')
'-'.join([1, 2])
'abc'.removeprefix('a') ~ 'abc'.removesuffix('c') ~ 'abc'.removeprefix('z')
'5'.isdigit() ~ 'a5'.isalnum() ~ 'ab'.isalpha() ~ ' '.isspace() ~ 'aB'.islower() ~ 'AB'.isupper() ~ ''.isdigit() ~ '1'.isupper()
'ab'.ljust(4) ~ '|' ~ 'ab'.rjust(4) ~ '|' ~ 'ab'.center(5) ~ '|' ~ 'abc'|center(8) ~ '|' ~ 'abc'.center(8) ~ '|'
'{} {1} {x}'.format(1, 2, x=3)
'{0} {0!r} {a:>5}|{b:<5}|{c:^5}|'.format('q', a=1, b=2, c='m')
'{{}}'.format()
'{'.format()
'{} {}'.format(1)
'%s %d %5.2f %r %% %x %-5s| %05d' % ('a', 3, 2.345, 'q', 255, 'l', 42)
'%s' % 5 ~ '%(a)s' % {'a': 1} ~ '%s' % [1, 2] ~ '%i' % 3.9
'%s %s' % (1,)
'%s' % (1, 2)
'%d' % 'a'
'%s and %s'|format(1, 2) ~ '%(k)s'|format(k=3)
'ab' * 3 ~ 2 * 'c' ~ [1] * 2 ~ 'x' * -1
[1] + [2] ~ (1,) + (2,)
[1] + (2,)
'a' + 1
1 + 'a'
nothing + 1
d + d
-n ~ +n ~ -x ~ - 'a'
list|length ~ word|length ~ d|length ~ csv|count ~ missing|length ~ ''|length
5|length
list|first ~ list|last ~ word|first ~ word|last
[]|first
[]|last is undefined
[]|first is undefined
list|join ~ list|join(', ') ~ people|join('-', attribute='name') ~ [1, none, 'a']|join('|')
list|sort ~ list|sort(reverse=true) ~ words|sort ~ words|sort(case_sensitive=true) ~ people|sort(attribute='name')|map(attribute='name')|list
people|sort(attribute='age,name')|map(attribute='name')|join(' ')
[1, 'a']|sort
words|unique|list ~ words|unique(true)|list ~ people|unique(attribute='age')|map(attribute='name')|list
list|max ~ list|min ~ words|max ~ words|min ~ people|max(attribute='age') ~ []|max
list|sum ~ people|sum(attribute='age') ~ list|sum(start=10) ~ []|sum
['a']|sum
list|reverse|list ~ word|reverse ~ (list|reverse)
list|map('string')|list ~ words|map('upper')|join ~ words|map('replace', 'p', 'b')|list
people|map(attribute='in.x', default=0)|list ~ people|map(attribute='zz')|list
list|map('nofilter')|list
list|map()|list
list|select('odd')|list ~ list|reject('odd')|list ~ [0, 1, '', 'a']|select|list ~ list|select('>', 1)|list ~ list|select('gt', 1)|list
people|selectattr('age', 'equalto', 30)|map(attribute='name')|list ~ people|rejectattr('age', '==', 30)|list|length ~ people|selectattr('in')|list|length
people|selectattr('in', 'defined')|list|length ~ people|selectattr('name', 'in', ['Bo', 'Cy'])|map(attribute='name')|join
people|selectattr('age', 'nosuch')|list
people|selectattr('age', 'equalto', 99)|first
(people|selectattr('age', 'equalto', 99)) is defined
'yes' if people|selectattr('age', 'equalto', 99) else 'no'
'yes' if people|selectattr('age', 'equalto', 99)|list else 'no'
people|selectattr('age', 'equalto', 30)|length
people|groupby('age')
people|groupby('age')|map(attribute='grouper')|list
people|groupby('age')|map('last')|list
people|groupby('zz')
people|groupby('zz', default=3)
people|min(attribute='zz')
people|groupby('age')|map('first')|list ~ words|groupby('x')|length
list|batch(2)|list ~ list|batch(2, 'x')|list ~ list|slice(2)|list ~ [1,2,3,4,5]|slice(3, 'x')|list
d|items|list ~ d|dictsort ~ d|dictsort(true) ~ {'a': 2, 'b': 1}|dictsort(by='value') ~ {'a': 2, 'b': 1}|dictsort(false, 'key', true)
[1]|items|list
5|dictsort
'3'|int ~ ' 42 '|int ~ '3.9'|int ~ 'x'|int ~ 'x'|int(5) ~ 'ff'|int(0, 16) ~ none|int(9) ~ 3.99|int ~ true|int ~ '-7'|int ~ '1_000'|int ~ ''|int
'2.5'|float ~ 'x'|float ~ 'x'|float(1.5) ~ 3|float ~ 'inf'|float ~ '1e3'|float ~ ' 7 '|float
2.5|round ~ 3.5|round ~ 2.567|round(2) ~ 2.1|round(0, 'ceil') ~ 2.9|round(method='floor') ~ 7|round
-5|abs ~ (-5)|abs ~ (-2.5)|abs
'x'|abs
'a b c, d'|wordcount ~ 'abc def ghi'|truncate(9) ~ 'abc def ghi jkl'|truncate(9) ~ 'abc def ghi jkl'|truncate(9, true) ~ 'abcdefghij'|truncate(5, true, '', 0)
'a\nb\n\nc'|indent ~ '|' ~ 'a\nb\n\nc'|indent(2, true) ~ '|' ~ 'a\nb\n\nc'|indent(2, blank=true) ~ '|' ~ 'a\nb'|indent('> ', first=true) ~ '|' ~ ''|indent
5|indent
'<a href="x">&\'</a>'|escape ~ ('<b>'|safe) ~ ('<b>'|e|e) ~ ('<b>'|e|forceescape)
('<b>'|safe) + '<c>' ~ '<c>' + ('<b>'|safe)
'a<'|e|string + '<'
d|tojson
d|tojson(indent=2)
d|tojson(indent='-')
[]|tojson(indent=2) ~ {}|tojson(indent=2) ~ [[]]|tojson(indent=1) ~ [1, [2]]|tojson(indent=0)
d|tojson(sort_keys=false) ~ {'b': 1, 'a': 2}|tojson(sort_keys=true) ~ [1, 2]|tojson(separators=(',', ':')) ~ {'a': 1}|tojson(separators=(',', ':'))
quotes|tojson ~ quotes|tojson(ensure_ascii=true) ~ '\x7f\x1f\b\f'|tojson
[1.0, 1e20, 0.1, true, none, (1, 2), 10]|tojson
{1: 'a', none: 'b', true: 'c', 1.5: 'd'}|tojson
{(1, 2): 3}|tojson
missing|tojson
range(3)|tojson
d.items()|tojson
(list|map('string'))|tojson
1 is number and 1.5 is float and 1 is integer and true is boolean and true is not integer
'a' is string and d is mapping and list is sequence and 'a' is sequence and d is sequence and 5 is not iterable
nothing is none and missing is undefined and yes is true and 1 is not true and false is false
list is iterable and missing is iterable and (list|map('string')) is iterable and (list|map('string')) is not sequence
4 is even and 9 is divisibleby 3 and 9 is divisibleby(3) and 1 is eq 1 and 1 is ne(2) and 2 is gt 1 and 1 is in [1]
'abc' is lower and 'ABC' is upper and 'aB' is not lower and '' is not upper
nothing is sameas none and yes is sameas true
1 is nosuchtest
1|nosuchfilter
1 if false else 1|nosuchfilter
'x' if true else 1|nosuchfilter
'b' is in 'abc'
n is not none
n is defined and n is not string and n > 5
n is in list is true
namespace(a=1).a ~ namespace({'b': 2}).b
namespace(_a=1)
namespace
dict(a=1, b=2) ~ dict({'x': 1}, y=2)
raise_exception('boom')
raise_exception
strftime_now('%Y') is string
nosuchfunction()
n()
'a'.nosuchmethod()
'a'.upper
list|attr('append')
d|attr('b') is undefined
'abc'|list ~ d|list ~ list|string ~ 5|string ~ none|string
'é世🙂'|length ~ 'é世🙂'[1] ~ 'é世🙂'[::-1] ~ 'é世🙂'|list
true + true ~ true * 3 ~ (true in [1]) ~ [true][false]
messages[0].content ~ messages[-1]['role'] ~ messages|map(attribute='role')|join(',')
messages|selectattr('role', 'equalto', 'user')|list|length
messages[0]
(messages|tojson)|length
1.5e3 ~ 1E2 ~ 5.0 ~ 100000000000000000.0 ~ 1.1e-7
9007199254740993 ~ 1e22
'a' ~ none ~ true ~ 1.0 ~ []
[]|join ~ [[]]|first
"a" in ["a", "b"] and "c" not in ["a"]
(1 if yes else 2) + 3
{'a': 1}.a ~ {'a': {'b': 2}}.a.b ~ [1, 2][0] ~ 'xyz'[1]
{'a': 1}['a'] ~ {1: 'one'}[1] ~ {true: 't'}[1] ~ {1: 'x'}[1.0]
list[0:2] + [9]
'abc def ghi'|truncate(9223372036854775807) ~ 'abc def ghi'|truncate(3, true, '', 9223372036854775807)
'abc'|truncate(3, true, '', -9)
'a,b,c'.split(',', -9223372036854775807 - 1) ~ 'aaa'.replace('a', 'b', -9223372036854775807 - 1) ~ 'a'.ljust(-9223372036854775807 - 1) ~ '|'
n|string + 's'
""".strip().split("\n")

STATEMENTS = [
    "a\n",
    "a\n\n",
    "{% if yes %}\nx\n{% endif %}\ny",
    "  {% if yes %}  \n  x\n  {% endif %}  y",
    "a {%- if yes -%}  b  {%- endif -%} c",
    "a {%+ if yes +%}\n b {% endif +%}\nc",
    "  {{ n }}  \n  {{- n -}}  \n z",
    "{# c #}\nx {#- c -#} y\n  {# d #}\nz",
    "{#+ c +#}\nx",
    "{% raw %}{{ x }} {% if %}{% endraw %}\nz",
    "  {%- raw -%}  {{ x }}  {%- endraw -%}  z",
    "x\r\ny\rz\r\n",
    "{{ '}}' }}{{ \"%}\" }}{{ {'a': {'b': 1}}['a'] }}",
    "{{ '{{' }}{{ '{%' }}",
    "{ { } } {x}",
    "{% for i in list %}{{ i }}{% if not loop.last %},{% endif %}{% endfor %}",
    "{% for i in list %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}"
    "{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.previtem }}{{ loop.nextitem }};{% endfor %}",
    "{% for i in list %}{{ loop.cycle('a', 'b') }}{{ loop.changed(i > 1) }}{% endfor %}",
    "{% for i in [] %}x{% else %}none{% endfor %}",
    "{% for i in list if i > 1 %}{{ loop.index }}{{ i }}{% else %}e{% endfor %}",
    "{% for i in list if i > 9 %}x{% else %}e{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k, v in d|items %}{{ k }};{% endfor %}{% for k in d %}{{ k }}{% endfor %}",
    "{% for a, b in [(1, 2), (3,)] %}{{ a }}{{ b }}{% endfor %}",
    "{% for a, b in ['xy', 'zw'] %}{{ b }}{{ a }}{% endfor %}",
    "{% for a in 5 %}{% endfor %}",
    "{% for a in none %}{% endfor %}",
    "{% for a in missing %}x{% else %}y{% endfor %}",
    "{% for c in word %}{{ c }}.{% endfor %}",
    "{% for i in range(5) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}",
    "{% break %}",
    "{% for i in list %}{% set z = i %}{% endfor %}{{ z }}",
    "{% set z = 0 %}{% for i in list %}{% set z = z + i %}{{ z }}{% endfor %}{{ z }}",
    "{% set ns = namespace(z=0) %}{% for i in list %}{% set ns.z = ns.z + i %}{% endfor %}{{ ns.z }}",
    "{% set ns = namespace() %}{{ ns.a is defined }}{% set ns.a = 1 %}{{ ns.a }}{{ ns['a'] }}",
    "{% set d.x = 1 %}",
    "{% set missing.x = 1 %}",
    "{% set ns = namespace() %}{% set ns._x = 1 %}",
    "{% if nothing %}{% set q = 1 %}{% endif %}{{ q is defined }}{% if yes %}{% set q = 2 %}{% endif %}{{ q }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set c = 1, 2 %}{{ c }}",
    "{% set a, b = [1] %}",
    "{% set a %}x{{ n }}{% set inner = 1 %}{% endset %}{{ a }}{{ a|length }}{{ inner is defined }}",
    "{% set a | upper | replace('X', 'z') %}x{{ n }}{% endset %}{{ a }}",
    "{% filter upper %}a{{ word }}{% endfilter %}{% filter replace('a', 'b')|trim %} a {% endfilter %}",
    "{% with a = 1, b = n %}{{ a }}{{ b }}{% set a = 5 %}{% endwith %}{{ a is defined }}",
    "{% with a = 1, b = a %}{{ b is defined }}{{ b }}{% endwith %}",
    "{% macro m(a, b=2, c=b) %}{{ a }}-{{ b }}-{{ c }};{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(b=5, a=4) }}{{ m() }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(z=2) }}",
    "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, z=3) }}",
    "{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}x{{ n }}{% endcall %}",
    "{% macro m() %}[{{ caller(5) }}]{% endmacro %}{% call(v) m() %}x{{ v }}{% endcall %}{{ m() }}",
    "{% macro m(x) %}{% if x > 0 %}{{ x }}{{ m(x - 1) }}{% endif %}{% endmacro %}{{ m(3) }}",
    "{% macro m(x) %}{{ m(x) }}{% endmacro %}{{ m(3) }}",
    "{% set g = 1 %}{% macro m() %}{{ g }}{% endmacro %}{% set g = 2 %}{{ m() }}",
    "{% for i in list %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}{{ m is defined }}",
    "{% macro m() %}{{ loop is defined }}{% endmacro %}{% for i in list %}{{ m() }}{% endfor %}",
    "{% macro m(x='a', y) %}{% endmacro %}",
    "{% macro m(x) %}\n  {{- x }}\n{% endmacro %}{{ m('a')|trim }}{{ m('b') ~ 'c' }}",
    "{% macro m(msg) %}{% set msg = msg ~ '!' %}{{ msg }}{% endmacro %}{{ m('a') }}{{ msg is defined }}",
    "{% for i in [[1, [2]], [3]] recursive %}{% if i is iterable %}({{ loop(i) }}){% else %}{{ i }}{{ loop.depth }}{% endif %}{% endfor %}",
    "{% for i in list %}{{ loop(i) }}{% endfor %}",
    "{% for g in people|groupby('age') %}{{ g.grouper }}{{ g.list|length }}{{ g[0] }}{{ g }}{% endfor %}",
    "{% for age, group in people|groupby('age') %}{{ age }}{% for p in group %}{{ p.name }}{% endfor %}{% endfor %}",
    "{% for i in list %}{% for j in words %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}",
    "{% generation %}a{% set q = 1 %}{{ n }}{% endgeneration %}{{ q is defined }}",
    "{%- generation -%}  a  {%- endgeneration -%}  b",
    "{% if yes %}{% elif 1/0 %}{% else %}{% endif %}ok",
    "{% if nothing %}a{% elif n > 5 %}b{% else %}c{% endif %}",
    "{% if nothing %}{{ 1|nosuch }}{% endif %}ok",
    "{% if nothing %}{% for i in list %}{{ i|nosuch }}{% endfor %}{% endif %}ok",
    "{% if n is nosuch %}{% endif %}",
    "{% if nothing and n is nosuch %}{% endif %}ok",
    "{% if yes %}",
    "{% endif %}",
    "{% for %}{% endfor %}",
    "{% nosuch %}",
    "{{ }}",
    "{{ 1 2 }}",
    "{{ (1 }}",
    "{{ 1) }}",
    "{{ 'abc }}",
    "{{ a b }}",
    "{{ 1 is odd is even }}",
    "{{ $ }}",
    "{{ f(a=1, 2) }}",
    "{# open",
    "{% raw %}x",
    "{% set true = 1 %}",
    "{% block b %}x{% endblock %}y{% block c scoped %}z{% endblock c %}",
    "{% print n, word %}",
    "{%- for m in messages -%}\n{{ '<|' + m['role'] + '|>' }}\n{{ m.content | trim }}\n{%- endfor -%}",
    "{% set messages = messages[1:] %}{{ messages|length }}",
    "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% else %}{% set loop_messages = messages %}"
    "{% endif %}{{ loop_messages|length }}",
    "{% for m in messages %}{% if loop.index0 % 2 == 0 != (m.role == 'user') %}bad{% else %}ok{% endif %}{% endfor %}",
    "{{- n -}}\n\n{{- n }}",
    "{%- set x = 5 %}   {%- if x %}\n\n   y   {%- endif %}",
    "\n\n{% if yes %}\n\n{% endif %}\n\n",
    "\u00a0{%- if yes -%}\u2003x\u3000{%- endif -%}\u00a0",
    "  \u00a0 {% if yes %}x{% endif %}",
    "{{ n }}\n{% if yes %}x{% endif %}",
    "{% for i in list %}\n{{ i }}\n{% endfor %}\n",
    "{%for i in list%}{{i}}{%endfor%}{%if n==7%}{{n}}{%endif%}",
    "{{n}}{{-n}}{{n-}}{{ -n }}{{ n -}} x",
    "{% set o = namespace(l=[]) %}{% for i in list %}{% set o.l = o.l + [i] %}{% endfor %}{{ o.l }}",
    "{{ [1,2,3,][0] }}{{ {'a':1,}['a'] }}{{ (1,2,)|length }}",
    "{{ n if n else '' }}{{ '' if n }}|",
    "{% set f = s.strip %}{{ f() }}{% set g = list.index %}{{ g(2) }}",
    "{% include 'x' %}",
]


def case(template: str) -> dict:
    try:
        text = _compile_jinja_template(template).render(**VARIABLES)
        # Text with memory addresses or Python class names is no valid result.
        internal = " at 0x" in text or "<class" in text
        return {"template": template, **({"error": "prints an object of Python"} if internal else {"text": text})}
    except Exception as error:  # whatever Python raises
        return {"template": template, "error": f"{type(error).__name__}: {error}"[:100]}


def main() -> None:
    cases = [case("{{ " + each + " }}") for each in EXPRESSIONS] + [case(each) for each in STATEMENTS]
    lines = ",\n".join(json.dumps(each, ensure_ascii=False) for each in cases)
    variables = json.dumps(VARIABLES, ensure_ascii=False)
    OUT.write_text(f'{{"variables": {variables},\n"cases": [\n{lines}\n]}}\n', encoding="utf-8")
    print(f"{OUT}: {len(cases)} cases, {sum('error' in each for each in cases)} of them errors")


if __name__ == "__main__":
    main()
