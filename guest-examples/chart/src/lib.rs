//! `chart`: draws line and bar charts as PNG pictures.
//! The lesson: image content, what is meant for whom, and telling the caller how far a long call has come.
//!
//! Holds the tool's definition and the checks that the schema cannot make; must hold no drawing.

mod canvas;
mod figure;
mod plot;
mod scale;

use figure::Figure;
use toolkit::{Annotations, CallResult, Content, Failure, Guest, Role, Tool};

struct Chart;

toolkit::export!(Chart);

impl Guest for Chart {
    fn list_tools() -> Vec<Tool> {
        vec![
            Tool::new(
                "chart",
                "Draws numbers as a line or bar chart and gives it back as a PNG picture. Use it to show a trend or a \
                 comparison to the user.",
                include_str!("../schemas/input.json"),
            )
            .title("Draw a chart")
            .read_only(),
        ]
    }

    fn call_tool(name: String, arguments_json: String) -> Result<CallResult, Failure> {
        match name.as_str() {
            "chart" => chart(&toolkit::arguments(&arguments_json)?),
            other => Err(Failure::unknown_tool(other)),
        }
    }
}

fn chart(figure: &Figure) -> Result<CallResult, Failure> {
    figure.check().map_err(|mistake| Failure::invalid(mistake.to_string()))?;
    let steps = u32::try_from(figure.series.len()).unwrap_or(u32::MAX).saturating_add(1);
    let canvas = plot::draw(figure, |series, name| {
        toolkit::report_progress(series, steps, &format!("drew {name}"));
    });
    let png = canvas.png().map_err(|error| Failure::Failed(format!("the picture could not be encoded: {error}")))?;
    toolkit::report_progress(steps, steps, "encoded the picture");
    Ok(CallResult::new(vec![
        Content::image(png, "image/png").annotated(Annotations::audience(&[Role::User]).priority(1.0)),
        Content::text(figure.summary()).annotated(Annotations::audience(&[Role::Assistant]).priority(0.3)),
    ]))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use serde_json::{Value, json};

    fn call(arguments: &Value) -> Result<CallResult, String> {
        Chart::call_tool("chart".to_owned(), arguments.to_string()).map_err(|failure| failure.message().to_owned())
    }

    #[test]
    fn a_chart_is_a_picture_for_the_user_and_a_summary_for_the_model() {
        let result = call(&json!({
            "kind": "line", "title": "Load", "width": 400, "height": 200,
            "series": [{"name": "web", "values": [1, 2.5, null, 4]}, {"values": [3, 1, 2, -1]}],
        }));
        let [Content::Image(image), Content::Text(text)] = <[Content; 2]>::try_from(result.unwrap().content).unwrap()
        else {
            panic!("a picture and a text");
        };
        assert_eq!(image.mime_type, "image/png");
        let mut reader = png::Decoder::new(std::io::Cursor::new(image.data)).read_info().unwrap();
        assert_eq!((reader.info().width, reader.info().height), (400, 200));
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        assert!(pixels.iter().any(|byte| *byte != 255), "something is drawn");
        assert_eq!(
            text.text,
            "Line chart \"Load\", 400x200 pixels: web: 3 values from 1 to 4; series 2: 4 values from -1 to 3."
        );
    }

    #[test]
    fn what_cannot_be_drawn_is_explained() {
        for (series, labels, message) in [
            (json!([{"values": [null]}]), json!(null), "there is nothing to draw: every value is null"),
            (json!([{"values": [1, 2]}]), json!(["a"]), "there are 2 values and 1 labels; each value needs one"),
            (
                json!([{"values": [1]}, {"values": [1, 2]}]),
                json!(null),
                "series 1 has 1 values and the longest has 2; fill the gaps with null",
            ),
        ] {
            let mut arguments = json!({"kind": "bar", "series": series});
            if !labels.is_null() {
                arguments.as_object_mut().unwrap().insert("labels".to_owned(), labels);
            }
            assert_eq!(call(&arguments).unwrap_err(), message);
        }
    }

    #[test]
    fn every_size_and_shape_is_drawn() {
        let many: Vec<f64> = (0..1000).map(|value| f64::from(value % 97) * 1e12).collect();
        for series in [
            json!([{"values": [0]}]),
            json!([{"values": [-5, -5]}]),
            json!([{"values": many}]),
            json!([{"values": [1e-9, 2e-9]}]),
        ] {
            for kind in ["line", "bar"] {
                for (width, height) in [(320, 200), (1600, 1200)] {
                    let arguments = json!({"kind": kind, "series": series, "width": width, "height": height});
                    assert!(call(&arguments).is_ok(), "{kind} {width}x{height}");
                }
            }
        }
    }
}
