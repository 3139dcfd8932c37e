"""Sentences from books in the public domain: what the embeddings of minilm_sentences.h5 are of."""

# Author, work, year of first publication, sentence. Groups of like meaning, so that similarities
# differ. Line breaks of verse became blanks and dashes hyphens; a part of a longer sentence begins
# with a capital and ends with a full stop.
SENTENCES = (
    # Love and marriage
    ("Jane Austen", "Pride and Prejudice", 1813, "Happiness in marriage is entirely a matter of chance."),
    ("Charlotte Bronte", "Jane Eyre", 1847, "Reader, I married him."),
    ("Emily Bronte", "Wuthering Heights", 1847, "Whatever our souls are made of, his and mine are the same."),
    ("Jane Austen", "Persuasion", 1817, "You pierce my soul. I am half agony, half hope."),
    ("William Shakespeare", "Sonnet 18", 1609, "Shall I compare thee to a summer's day?"),
    ("Elizabeth Barrett Browning", "Sonnets from the Portuguese", 1850,
     "How do I love thee? Let me count the ways."),
    # Night and weather
    ("Edward Bulwer-Lytton", "Paul Clifford", 1830,
     "It was a dark and stormy night; the rain fell in torrents."),
    ("Edgar Allan Poe", "The Raven", 1845,
     "Once upon a midnight dreary, while I pondered, weak and weary."),
    ("Mary Shelley", "Frankenstein", 1818, "It was on a dreary night of November."),
    ("Charles Dickens", "Bleak House", 1853, "Fog everywhere."),
    ("Charlotte Bronte", "Jane Eyre", 1847, "There was no possibility of taking a walk that day."),
    ("Percy Bysshe Shelley", "Ode to the West Wind", 1820, "If Winter comes, can Spring be far behind?"),
    # Death and fear
    ("Charles Dickens", "A Christmas Carol", 1843, "Marley was dead: to begin with."),
    ("Edgar Allan Poe", "The Tell-Tale Heart", 1843, "It is the beating of his hideous heart!"),
    ("Mary Shelley", "Frankenstein", 1818, "Beware; for I am fearless, and therefore powerful."),
    ("Bram Stoker", "Dracula", 1897, "Listen to them - the children of the night. What music they make!"),
    # Detectives
    ("Arthur Conan Doyle", "The Sign of the Four", 1890,
     "Whatever remains, however improbable, must be the truth."),
    ("Arthur Conan Doyle", "A Scandal in Bohemia", 1891, "You see, but you do not observe."),
    ("Arthur Conan Doyle", "A Scandal in Bohemia", 1891,
     "It is a capital mistake to theorize before one has data."),
    ("Arthur Conan Doyle", "The Hound of the Baskervilles", 1902,
     "Mr. Holmes, they were the footprints of a gigantic hound!"),
    # Time, space and nature
    ("H. G. Wells", "The Time Machine", 1895, "We are always getting away from the present moment."),
    ("H. G. Wells", "The War of the Worlds", 1898,
     "The chances against anything manlike on Mars are a million to one."),
    ("Charles Darwin", "On the Origin of Species", 1859, "There is grandeur in this view of life."),
    # The sea
    ("Herman Melville", "Moby-Dick", 1851, "Call me Ishmael."),
    ("Joseph Conrad", "Heart of Darkness", 1899, "The sea-reach of the Thames stretched before us."),
    ("Samuel Taylor Coleridge", "The Rime of the Ancient Mariner", 1798,
     "Water, water, every where, nor any drop to drink."),
    ("Robert Louis Stevenson", "Treasure Island", 1883, "Fifteen men on the dead man's chest."),
    # Children and families
    ("Leo Tolstoy, translated by Constance Garnett", "Anna Karenina", 1901,
     "Happy families are all alike; every unhappy family is unhappy in its own way."),
    ("Louisa May Alcott", "Little Women", 1868, "Christmas won't be Christmas without any presents."),
    ("J. M. Barrie", "Peter and Wendy", 1911, "All children, except one, grow up."),
    ("Lewis Carroll", "Alice's Adventures in Wonderland", 1865, "Oh dear! Oh dear! I shall be late!"),
    ("Lewis Carroll", "Through the Looking-Glass", 1871, "Beware the Jabberwock, my son!"),
    # Liberty and truth
    ("Thomas Jefferson", "The Declaration of Independence", 1776,
     "We hold these truths to be self-evident, that all men are created equal."),
    ("Thomas Paine", "The American Crisis", 1776, "These are the times that try men's souls."),
    ("Oscar Wilde", "The Importance of Being Earnest", 1895, "The truth is rarely pure and never simple."),
    ("Oscar Wilde", "Lady Windermere's Fan", 1892, "I can resist everything except temptation."),
)
