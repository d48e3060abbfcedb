//! `echo` for wassette: a component whose exported function is the tool.

wit_bindgen::generate!({
    inline: "
        package toolcell:bench;

        world peer {
            export echo: func(text: string) -> string;
        }
    ",
});

struct Echo;

impl Guest for Echo {
    fn echo(text: String) -> String {
        text
    }
}

export!(Echo);
