"""What the component says, run natively with the generated bindings: no component is needed for it."""

import json
import unittest

from componentize_py_types import Err
from wit_world.exports.completion import Subject_Prompt, Subject_Template, Typed
from wit_world.imports.types import Given

from tool import Completion, Prompts, Resources, Tools


class Recipes(unittest.TestCase):
    def test_recipes_are_found_by_words_of_their_titles(self):
        found = Tools().call_tool("cookbook_find", json.dumps({"words": "SOUP"}))
        self.assertEqual(found.content[0].value.text, "Pea soup: recipe:///pea-soup\n")
        self.assertEqual(json.loads(found.structured_json), {"recipes": [{"title": "Pea soup", "uri": "recipe:///pea-soup"}]})

    def test_a_prompt_holds_the_recipe_and_what_is_requested(self):
        messages = Prompts().get_prompt("cook", [Given("recipe", "porridge"), Given("people", "4")]).messages
        self.assertTrue(messages[0].content.value.body.value.startswith("# Porridge"))
        self.assertIn("for 4.", messages[1].content.value.text)
        with self.assertRaises(Err):
            Prompts().get_prompt("cook", [Given("recipe", "stone soup")])

    def test_names_are_completed(self):
        for subject, argument in [(Subject_Prompt("cook"), "recipe"), (Subject_Template("recipe:///{name}"), "name")]:
            found = Completion().complete(Typed(subject=subject, argument=argument, value="p", others=[]))
            self.assertEqual(found.values, ["pancakes", "pea-soup", "porridge"])

    def test_resources_are_read(self):
        self.assertEqual([listed.uri for listed in Resources().list_resources()], ["recipe:///", "recipe:///{name}"])
        self.assertIn("Pancakes: recipe:///pancakes", Resources().read_resource("recipe:///")[0].body.value)
        with self.assertRaises(Err):
            Resources().read_resource("recipe:///stone-soup")
