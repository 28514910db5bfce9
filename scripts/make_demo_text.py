"""Writes the text that the demo model is trained and calibrated on.

Short factual paragraphs (countries, animals, numbers, days, colours, trades) and little stories, all put together
from the word lists and templates below, which were written for this project. Nothing is copied from anywhere, so the
text has the project's licence. The stories repeat names, colours and places from their first lines, so that a model
has to look back, through its KV cache, to tell them well.

Two splits. A story belongs to the split "held_out" when the hash of its hero, thing and place is 0 modulo 10, else to
"train". Facts are shared by both splits (a model cannot guess them), but a paragraph of the held-out split is dropped
from training when the very same one turns up there.

    python scripts/make_demo_text.py            writes datasets/calibration.txt and datasets/prompts.jsonl

Needs only the standard library; the same seed gives the same bytes.
"""

import json
import pathlib
import random
import zlib

# country, capital, continent, river through the capital, main language, known for
COUNTRIES = [
    ("England", "London", "Europe", "Thames", "English", "tea and rain"),
    ("Scotland", "Edinburgh", "Europe", None, "English", "lochs and mountains"),
    ("Wales", "Cardiff", "Europe", "Taff", "English and Welsh", "castles and sheep"),
    ("Ireland", "Dublin", "Europe", "Liffey", "English and Irish", "green fields"),
    ("France", "Paris", "Europe", "Seine", "French", "bread and cheese"),
    ("Spain", "Madrid", "Europe", "Manzanares", "Spanish", "oranges and olive oil"),
    ("Portugal", "Lisbon", "Europe", "Tagus", "Portuguese", "cork and sailing ships"),
    ("Italy", "Rome", "Europe", "Tiber", "Italian", "pasta and old ruins"),
    ("Germany", "Berlin", "Europe", "Spree", "German", "cars and dark forests"),
    ("Austria", "Vienna", "Europe", "Danube", "German", "music and cake"),
    ("Hungary", "Budapest", "Europe", "Danube", "Hungarian", "hot springs"),
    ("Serbia", "Belgrade", "Europe", "Danube", "Serbian", "raspberries"),
    ("Slovakia", "Bratislava", "Europe", "Danube", "Slovak", "caves and castles"),
    ("Poland", "Warsaw", "Europe", "Vistula", "Polish", "amber and dumplings"),
    ("Norway", "Oslo", "Europe", None, "Norwegian", "fjords and snow"),
    ("Sweden", "Stockholm", "Europe", None, "Swedish", "pine forests and lakes"),
    ("Finland", "Helsinki", "Europe", None, "Finnish", "saunas and lakes"),
    ("Denmark", "Copenhagen", "Europe", None, "Danish", "bicycles and windmills"),
    ("Iceland", "Reykjavík", "Europe", None, "Icelandic", "volcanoes and geysers"),
    ("Greece", "Athens", "Europe", None, "Greek", "olives and temples"),
    ("Bulgaria", "Sofia", "Europe", None, "Bulgarian", "roses and yoghurt"),
    ("Ukraine", "Kyiv", "Europe", "Dnieper", "Ukrainian", "wheat and sunflowers"),
    ("Latvia", "Riga", "Europe", "Daugava", "Latvian", "birch woods and songs"),
    ("Estonia", "Tallinn", "Europe", None, "Estonian", "islands and forests"),
    ("Egypt", "Cairo", "Africa", "Nile", "Arabic", "pyramids and cotton"),
    ("Sudan", "Khartoum", "Africa", "Nile", "Arabic", "deserts and gum trees"),
    ("Kenya", "Nairobi", "Africa", "Nairobi", "Swahili and English", "lions and tea"),
    ("Ghana", "Accra", "Africa", None, "English", "cocoa and gold"),
    ("Morocco", "Rabat", "Africa", "Bou Regreg", "Arabic", "mint tea and carpets"),
    ("Senegal", "Dakar", "Africa", None, "French", "peanuts and drums"),
    ("Angola", "Luanda", "Africa", None, "Portuguese", "oil and diamonds"),
    ("Mali", "Bamako", "Africa", "Niger", "French and Bambara", "salt and mud mosques"),
    ("Uganda", "Kampala", "Africa", None, "English and Swahili", "gorillas and coffee"),
    ("Zambia", "Lusaka", "Africa", None, "English", "copper and waterfalls"),
    ("Tunisia", "Tunis", "Africa", None, "Arabic", "dates and olives"),
    ("Japan", "Tokyo", "Asia", "Sumida", "Japanese", "fast trains and cherry trees"),
    ("China", "Beijing", "Asia", None, "Chinese", "silk and pandas"),
    ("Thailand", "Bangkok", "Asia", "Chao Phraya", "Thai", "rice and elephants"),
    ("Vietnam", "Hanoi", "Asia", "Red River", "Vietnamese", "noodles and lanterns"),
    ("Laos", "Vientiane", "Asia", "Mekong", "Lao", "silk and waterfalls"),
    ("Cambodia", "Phnom Penh", "Asia", "Mekong", "Khmer", "stone temples"),
    ("Iraq", "Baghdad", "Asia", "Tigris", "Arabic and Kurdish", "dates and old cities"),
    ("Iran", "Tehran", "Asia", None, "Persian", "carpets and saffron"),
    ("Nepal", "Kathmandu", "Asia", "Bagmati", "Nepali", "high mountains"),
    ("India", "New Delhi", "Asia", "Yamuna", "Hindi and English", "spices and cricket"),
    ("Mongolia", "Ulaanbaatar", "Asia", "Tuul", "Mongolian", "horses and wide plains"),
    ("Jordan", "Amman", "Asia", None, "Arabic", "red rocks and deserts"),
    ("Canada", "Ottawa", "North America", "Ottawa", "English and French", "maple syrup and ice"),
    ("Mexico", "Mexico City", "North America", None, "Spanish", "maize and chocolate"),
    ("Cuba", "Havana", "North America", None, "Spanish", "sugar and old cars"),
    ("Jamaica", "Kingston", "North America", None, "English", "music and beaches"),
    ("Costa Rica", "San José", "North America", None, "Spanish", "coffee and rainforests"),
    ("Brazil", "Brasília", "South America", None, "Portuguese", "football and rainforests"),
    ("Peru", "Lima", "South America", "Rímac", "Spanish", "llamas and potatoes"),
    ("Chile", "Santiago", "South America", "Mapocho", "Spanish", "copper and deserts"),
    ("Colombia", "Bogotá", "South America", None, "Spanish", "coffee and flowers"),
    ("Ecuador", "Quito", "South America", None, "Spanish", "bananas and volcanoes"),
    ("Uruguay", "Montevideo", "South America", None, "Spanish", "cattle and beaches"),
    ("Australia", "Canberra", "Oceania", "Molonglo", "English", "kangaroos and reefs"),
    ("New Zealand", "Wellington", "Oceania", None, "English and Māori", "sheep and kiwis"),
    ("Fiji", "Suva", "Oceania", None, "English and Fijian", "palm trees and coral"),
]

# animal, kind, legs, food, home, sound, young
ANIMALS = [
    ("cow", "mammal", "four", "grass", "on a farm", "moos", "calf"),
    ("sheep", "mammal", "four", "grass", "on a farm", "bleats", "lamb"),
    ("horse", "mammal", "four", "hay", "in a stable", "neighs", "foal"),
    ("pig", "mammal", "four", "roots", "in a sty", "grunts", "piglet"),
    ("dog", "mammal", "four", "meat", "in a kennel", "barks", "puppy"),
    ("cat", "mammal", "four", "fish", "in a house", "meows", "kitten"),
    ("lion", "mammal", "four", "meat", "on the plains", "roars", "cub"),
    ("wolf", "mammal", "four", "meat", "in the forest", "howls", "cub"),
    ("fox", "mammal", "four", "mice", "in a den", "barks", "cub"),
    ("bear", "mammal", "four", "berries", "in a cave", "growls", "cub"),
    ("elephant", "mammal", "four", "leaves", "on the plains", "trumpets", "calf"),
    ("mouse", "mammal", "four", "seeds", "in a hole", "squeaks", "pup"),
    ("goat", "mammal", "four", "grass", "in the mountains", "bleats", "kid"),
    ("rabbit", "mammal", "four", "carrots", "in a burrow", "squeals", "kit"),
    ("duck", "bird", "two", "weeds", "on a pond", "quacks", "duckling"),
    ("hen", "bird", "two", "corn", "in a coop", "clucks", "chick"),
    ("owl", "bird", "two", "mice", "in a tree", "hoots", "owlet"),
    ("crow", "bird", "two", "worms", "in a tree", "caws", "chick"),
    ("goose", "bird", "two", "grass", "by a lake", "honks", "gosling"),
    ("swan", "bird", "two", "weeds", "by a lake", "hisses", "cygnet"),
    ("eagle", "bird", "two", "meat", "in the mountains", "screams", "eaglet"),
    ("frog", "amphibian", "four", "flies", "in a pond", "croaks", "tadpole"),
    ("bee", "insect", "six", "nectar", "in a hive", "buzzes", "grub"),
    ("cricket", "insect", "six", "leaves", "in the grass", "chirps", "nymph"),
]

NUMBERS = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
           "seventeen eighteen nineteen twenty").split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = ("January February March April May June July August September October November December").split()
SEASONS = {"winter": (11, 0, 1), "spring": (2, 3, 4), "summer": (5, 6, 7), "autumn": (8, 9, 10)}

MIXES = [("red", "yellow", "orange"), ("blue", "yellow", "green"), ("red", "blue", "purple"),
         ("black", "white", "grey"), ("red", "white", "pink")]
COLOURED = [("snow", "white"), ("coal", "black"), ("grass", "green"), ("the clear sky", "blue"),
            ("a ripe banana", "yellow"), ("a ripe tomato", "red"), ("an elephant", "grey"), ("a carrot", "orange"),
            ("milk", "white"), ("a flamingo", "pink"), ("a raven", "black"), ("a plum", "purple")]
OPPOSITES = [("hot", "cold"), ("big", "small"), ("fast", "slow"), ("old", "young"), ("light", "dark"),
             ("wet", "dry"), ("full", "empty"), ("hard", "soft"), ("high", "low"), ("loud", "quiet"),
             ("open", "closed"), ("heavy", "light"), ("near", "far"), ("early", "late"), ("rich", "poor")]
TRADES = [("baker", "bakes bread", "flour"), ("carpenter", "makes tables", "wood"), ("smith", "bends iron", "fire"),
          ("tailor", "sews coats", "cloth"), ("potter", "makes bowls", "clay"), ("farmer", "grows wheat", "seed"),
          ("mason", "builds walls", "stone"), ("painter", "paints pictures", "colour"), ("cook", "makes soup", "salt"),
          ("teacher", "teaches children", "chalk"), ("sailor", "sails ships", "rope"),
          ("gardener", "plants flowers", "soil"), ("weaver", "weaves cloth", "wool"),
          ("fisherman", "catches fish", "nets"), ("clockmaker", "mends clocks", "small wheels")]
SHAPES = [("triangle", "three"), ("square", "four"), ("pentagon", "five"), ("hexagon", "six"), ("octagon", "eight")]
PLANETS = "Mercury Venus Earth Mars Jupiter Saturn Uranus Neptune".split()
ORDINALS = "first second third fourth fifth sixth seventh eighth".split()

GIRLS = "Anna Clara Edith Grace Helen Ivy Lucy Maya Nora Olive Rosa Susan".split()
BOYS = "Ben Daniel Edgar Felix George Hugo Jack Leo Martin Oscar Peter Tom".split()
COLOURS = "red blue green yellow white black brown grey purple orange".split()
THINGS = "kite ball hat book scarf drum boat lamp basket ring umbrella clock bell coat cup whistle".split()
PLACES = ["park", "garden", "market", "harbour", "library", "station", "school", "forest", "castle", "village square",
          "old mill", "beach"]
HIDING = ["under a bench", "behind a wall", "in a tall tree", "beside the gate", "on a window sill", "in a deep puddle",
          "under a pile of leaves", "on the stairs", "between two stones", "next to a barrel"]
FOODS = ["apples", "pears", "bread", "cheese", "honey", "carrots", "eggs", "plums", "mushrooms", "beans"]
WEATHER = [("sunny", "The sun was warm", "hat"), ("rainy", "The rain fell hard", "umbrella"),
           ("windy", "The wind blew all day", "scarf"), ("snowy", "The snow lay deep", "coat"),
           ("foggy", "The fog hid the hills", "lamp")]
FEELINGS = ["happy", "sad", "tired", "proud", "worried", "excited"]


class Chooser(random.Random):
    """Random choices, even ones, or with the first option favoured: then greedy text is no toss-up between two forms."""

    favour = 0.0

    def favoured(self):
        return self.favour > 0 and self.random() < self.favour

    def pick(self, options):
        return options[0] if self.favoured() else self.choice(options)

    def order(self, options):
        if not self.favoured():
            self.shuffle(options)
        return options

    def count(self, low, high, usual):
        return usual if self.favoured() else self.randint(low, high)


def capitalise(text):
    return text[0].upper() + text[1:]


def article(noun):
    return ("an " if noun[0] in "aeiou" else "a ") + noun


def country_sentences(row, rng):
    country, capital, continent, river, language, known = row
    out = [
        rng.pick([f"{country} is a country in {continent}.", f"{country} lies in {continent}.",
                  f"On the map, {country} is in {continent}."]),
        rng.pick([f"The people of {country} speak {language}.", f"Most people there speak {language}.",
                  f"In {capital} you will hear people speak {language}."]),
        rng.pick([f"{country} is known for {known}.", f"Many visitors have heard of its {known}.",
                  f"People in {capital} like to talk about {known}."]),
    ]
    if river:
        name = river if river.endswith("River") else f"River {river}"
        out.append(rng.pick([f"The {name} flows through {capital}.", f"{capital} stands on the {name}.",
                             f"In {capital} there are bridges over the {name}."]))
    return rng.order(out)


def capital_sentence(row, rng):
    country, capital = row[0], row[1]
    return rng.pick([f"{capital} is the capital of {country}."] * 3 +
                    [f"The capital of {country} is {capital}."] * 2 +
                    [f"The capital city of {country} is called {capital}."])


def country_document(rng):
    row = rng.choice(COUNTRIES)
    body = country_sentences(row, rng)[:rng.count(2, 4, usual=3)]
    return " ".join([capital_sentence(row, rng)] + body)


def capitals_document(rng):
    rows = rng.sample(COUNTRIES, rng.randint(3, 6))
    form = rng.randint(0, 2)
    if form == 0:
        return " ".join(f"{r[1]} is the capital of {r[0]}." for r in rows)
    if form == 1:
        return " ".join(f"The capital of {r[0]} is {r[1]}." for r in rows)
    return "\n".join(f"Question: What is the capital of {r[0]}?\nAnswer: {r[1]}." for r in rows)


def traveller_document(rng):
    a, b, c = rng.sample(COUNTRIES, 3)
    name = rng.choice(GIRLS + BOYS)
    she = "She" if name in GIRLS else "He"
    lines = [f"{name} wanted to see the world.",
             f"First {she.lower()} went to {a[0]} and stayed in {a[1]}.",
             f"Then {she.lower()} took a train to {b[1]}, the capital of {b[0]}.",
             f"There {she.lower()} learned to say hello in {b[4].split(' and ')[0]}.",
             f"Last of all {name} flew to {c[0]}, which is in {c[2]}, and wrote a letter from {c[1]}.",
             f"\"I have seen {a[1]}, {b[1]} and {c[1]},\" wrote {name}."]
    return " ".join(lines)


def animal_document(rng):
    animal, kind, legs, food, home, sound, young = rng.choice(ANIMALS)
    head = rng.pick([f"{capitalise(article(animal))} is {article(kind)}.",
                     f"The {animal} is {article(kind)} with {legs} legs."])
    body = [rng.pick([f"It lives {home}.", f"You may find it {home}."]),
            rng.pick([f"It eats {food}.", f"{capitalise(article(animal))} eats {food}."]),
            rng.pick([f"{capitalise(article(animal))} {sound}.", f"When it is happy, it {sound}."]),
            f"A young {animal} is called {article(young)}."]
    return " ".join([head] + rng.order(body)[:rng.count(2, 4, usual=3)])


def number_document(rng):
    lines = []
    for _ in range(rng.randint(3, 6)):
        form = rng.randint(0, 3)
        a, b = rng.randint(0, 10), rng.randint(0, 10)
        if form == 0:
            lines.append(f"{capitalise(NUMBERS[a])} plus {NUMBERS[b]} is {NUMBERS[a + b]}.")
        elif form == 1:
            lines.append(f"{capitalise(NUMBERS[a + b])} minus {NUMBERS[b]} is {NUMBERS[a]}.")
        elif form == 2:
            n = rng.randint(0, 19)
            lines.append(f"After {NUMBERS[n]} comes {NUMBERS[n + 1]}.")
        elif a != b:
            lines.append(f"{capitalise(NUMBERS[max(a, b)])} is more than {NUMBERS[min(a, b)]}.")
    start = rng.randint(0, 8)
    lines.append("Count with me: " + ", ".join(NUMBERS[start:start + rng.randint(4, 10)]) + ".")
    return " ".join(lines)


def calendar_document(rng):
    lines = []
    for _ in range(rng.randint(3, 5)):
        form, d, m = rng.randint(0, 4), rng.randint(0, 6), rng.randint(0, 11)
        if form == 0:
            lines.append(f"The day after {DAYS[d]} is {DAYS[(d + 1) % 7]}.")
        elif form == 1:
            lines.append(f"The day before {DAYS[d]} is {DAYS[(d + 6) % 7]}.")
        elif form == 2:
            lines.append(f"{MONTHS[m]} is followed by {MONTHS[(m + 1) % 12]}.")
        elif form == 3:
            season = next(s for s, months in SEASONS.items() if m in months)
            lines.append(f"In Europe, {MONTHS[m]} is a month of {season}.")
        else:
            lines.append(f"If today is {DAYS[d]}, tomorrow will be {DAYS[(d + 1) % 7]}.")
    return " ".join(lines)


def colour_document(rng):
    lines = []
    for _ in range(rng.randint(2, 3)):
        a, b, c = rng.choice(MIXES)
        if rng.random() < 0.5:
            a, b = b, a
        lines.append(rng.pick([f"{capitalise(a)} and {b} make {c}.", f"If you mix {a} with {b}, you get {c}."]))
    for _ in range(rng.randint(1, 3)):
        thing, colour = rng.choice(COLOURED)
        lines.append(f"{capitalise(thing)} is {colour}.")
    rng.shuffle(lines)
    return " ".join(lines)


def world_document(rng):
    lines = []
    for _ in range(rng.randint(3, 5)):
        form = rng.randint(0, 4)
        if form == 0:
            a, b = rng.choice(OPPOSITES)
            lines.append(f"The opposite of {a} is {b}.")
        elif form == 1:
            trade, does, needs = rng.choice(TRADES)
            lines.append(f"{capitalise(article(trade))} {does} and needs {needs}.")
        elif form == 2:
            shape, sides = rng.choice(SHAPES)
            lines.append(f"{capitalise(article(shape))} has {sides} sides.")
        elif form == 3:
            i = rng.randint(0, 7)
            lines.append(f"{PLANETS[i]} is the {ORDINALS[i]} planet from the sun.")
        else:
            lines.append(rng.pick(["Water freezes in winter and flows in spring.", "The sun rises in the east.",
                                   "The sun sets in the west.", "Rivers run down to the sea.",
                                   "Bees make honey and hens lay eggs.", "A year has twelve months.",
                                   "A week has seven days.", "The moon goes round the Earth."]))
    return " ".join(lines)


def cast(rng, split):
    """A hero, a friend, a coloured thing and two places, such that the hero's triple belongs to the split."""
    while True:
        hero, friend = rng.sample(GIRLS + BOYS, 2)
        thing, place = rng.choice(THINGS), rng.choice(PLACES)
        held_out = zlib.crc32(f"{hero}|{thing}|{place}".encode()) % 10 == 0
        if held_out == (split == "held_out"):
            break
    girl = hero in GIRLS
    return {"hero": hero, "friend": friend, "thing": thing, "place": place, "she": "she" if girl else "he",
            "her": "her" if girl else "his", "colour": rng.choice(COLOURS), "day": rng.choice(DAYS),
            "hiding": rng.choice(HIDING), "food": rng.choice(FOODS),
            "other": rng.choice([p for p in PLACES if p != place])}


def lost_story(rng, split):
    s = cast(rng, split)
    weather, weather_line, _ = rng.choice(WEATHER)
    lines = [
        rng.pick(["One {weather} {day}, {hero} went to the {place} with {her} {colour} {thing}.",
                  "On {day}, {hero} took {her} {colour} {thing} to the {place}."]),
        rng.pick([weather_line + ".", "It was a " + weather + " day.", "{hero} met {friend} there."]),
        rng.pick(["After a while, the {colour} {thing} was gone.", "But {she} lost the {thing} on the way."]),
        rng.pick(["{hero} was very sad and looked for it everywhere.", "\"Where is my {thing}?\" cried {hero}."]),
        rng.pick(["{friend} came to help.", "\"Let us look together,\" said {friend}."]),
        rng.pick(["At last they found the {thing} {hiding}.", "{friend} saw something {colour} {hiding}."]),
        rng.pick(["It was the {colour} {thing}!", "\"There is your {colour} {thing}, {hero}!\" said {friend}."]),
        rng.pick(["{hero} thanked {friend} and went home from the {place}.",
                  "{hero} was happy again and gave {friend} some {food}."]),
    ]
    return " ".join(lines).format(weather=weather, **s)


def gift_story(rng, split):
    s = cast(rng, split)
    lines = [
        rng.pick(["{friend} had a birthday on {day}.", "It was {day}, and {friend} was one year older."]),
        rng.pick(["{hero} wanted to give {friend} a present.", "{hero} thought for a long time about a present."]),
        rng.pick(["So {she} went to the {place} and bought a {colour} {thing}.",
                  "At the {place} {she} saw a {colour} {thing} and bought it."]),
        rng.pick(["{hero} put it in a box with some {food}.", "{she_} hid the {thing} {hiding}."]),
        rng.pick(["Then {hero} walked to the {other} to meet {friend}.", "{friend} was waiting at the {other}."]),
        rng.pick(["\"This is for you,\" said {hero}.", "\"Happy birthday, {friend}!\" said {hero}."]),
        rng.pick(["{friend} opened the box and saw the {colour} {thing}.", "It was a {colour} {thing}!"]),
        rng.pick(["\"Thank you, {hero},\" said {friend}.", "{friend} took the {thing} home from the {other}."]),
    ]
    return " ".join(lines).format(she_=s["she"].capitalize(), **s)


def market_story(rng, split):
    s = cast(rng, split)
    n, m = rng.randint(2, 9), rng.randint(1, 8)
    m = min(m, n - 1)
    other_food = rng.choice([f for f in FOODS if f != s["food"]])
    lines = [
        rng.pick(["Every {day}, {hero} sells {food} at the {place}.",
                  "{hero} has a stall at the {place} and sells {food} there."]),
        f"This {s['day']} {{she}} had {NUMBERS[n]} baskets.",
        f"{{friend}} came and bought {NUMBERS[m]} of them.",
        rng.pick([f"Now {{hero}} had {NUMBERS[n - m]} left.", f"{NUMBERS[n - m].capitalize()} of them {'was' if n - m == 1 else 'were'} left."]),
        f"\"Do you have any {other_food}?\" asked {{friend}}.",
        f"\"No, I have only {{food}},\" said {{hero}}.",
        rng.pick(["In the evening {hero} put on {her} {colour} coat and went home.",
                  "{hero} closed the stall and rang the {colour} bell."]),
    ]
    if s["thing"] == "lamp":
        lines.append("The {colour} lamp was still burning.".replace("{colour}", s["colour"]))
    return " ".join(lines).format(**s)


def animal_story(rng, split):
    s = cast(rng, split)
    animal, _, _, food, home, sound, young = rng.choice(ANIMALS)
    size = rng.choice(["small", "old", "hungry", "shy", "clever"])
    lines = [
        f"Once there was {article(size)} {animal} that lived near the {{place}}.",
        f"{{hero}} came by on {{day}} with {{her}} {{thing}} and some {food}.",
        rng.pick([f"The {animal} looked at the {food}.", f"\"Hello, little {animal},\" said {{hero}}."]),
        f"\"Are you hungry?\" {{she}} asked, and the {animal} ate the {food}.",
        rng.pick([f"From then on, the {size} {animal} came to the {{place}} every {{day}}.",
                  f"The next {{day}}, the {animal} came back with a {young}."]),
        rng.pick([f"{{friend}} could not believe it, but {{hero}} only smiled.",
                  f"\"That {animal} is my friend,\" {{hero}} told {{friend}}."]),
        f"The {animal} slept {home}, and {{hero}} went home with {{her}} {{thing}}.",
    ]
    return " ".join(lines).format(**s)


def weather_story(rng, split):
    s = cast(rng, split)
    weather, weather_line, wear = rng.choice(WEATHER)
    feeling = rng.choice(FEELINGS)
    lines = [
        f"It was a {weather} {{day}}.",
        f"{weather_line}, and {{hero}} took {{her}} {{colour}} {wear}.",
        rng.pick(["{she_} walked past the {place} to the {other}.", "First {she} went to the {place}, then to the {other}."]),
        f"At the {{other}} {{she}} met {{friend}}, who was {feeling}.",
        f"\"Why are you {feeling}?\" asked {{hero}}.",
        rng.pick([f"\"Because it is {weather},\" said {{friend}}.", "\"Because of my {thing},\" said {friend}."]),
        f"So {{hero}} gave {{friend}} the {{colour}} {wear}, and they walked back to the {{place}}.",
    ]
    return " ".join(lines).format(she_=s["she"].capitalize(), **s)


FACTS = [(country_document, 5), (capitals_document, 4), (traveller_document, 2), (animal_document, 3),
         (number_document, 2), (calendar_document, 2), (colour_document, 1), (world_document, 2)]
STORIES = [(lost_story, 3), (gift_story, 3), (market_story, 2), (animal_story, 2), (weather_story, 2)]


def documents(seed, split, favour=0.6):
    """An endless stream of documents of a split, "train" or "held_out"."""
    rng = Chooser(f"{split}/{seed}")
    rng.favour = favour
    while True:
        if rng.random() < 0.55:
            maker, = rng.choices([m for m, _ in FACTS], [w for _, w in FACTS])
            yield maker(rng)
        else:
            maker, = rng.choices([m for m, _ in STORIES], [w for _, w in STORIES])
            yield maker(rng, split)


def take(stream, n_bytes):
    out, size = [], 0
    for text in stream:
        out.append(text)
        size += len(text.encode()) + 2
        if size >= n_bytes:
            return out


def calibration_documents():
    """Half from each split, so that calibration sees both what the model knows and what it does not."""
    train, held_out = take(documents(7, "train"), 125_000), take(documents(7, "held_out"), 125_000)
    both = train + held_out
    random.Random("calibration").shuffle(both)
    return both


PROMPTS = [
    "London is the capital of",
    "Question: What is the capital of Japan?\nAnswer:",
    "A cow eats grass. A young cow is called",
    "The day after Tuesday is",
    "On Saturday, Lucy took her purple kite to the beach.",
    "Budapest is the capital of Hungary. The River Danube",
    "Felix has a stall at the harbour and sells honey there. This Friday he had eight baskets. Oscar came and bought",
    "Blue and yellow make",
]


def main():
    root = pathlib.Path(__file__).resolve().parent.parent / "datasets"
    root.mkdir(exist_ok=True)
    (root / "calibration.txt").write_text("\n\n".join(calibration_documents()) + "\n", encoding="utf-8")
    lines = [json.dumps({"prompt": p}, ensure_ascii=False) for p in PROMPTS]
    (root / "prompts.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
