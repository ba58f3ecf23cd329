"""Reads the list of tools with the clients and converters of agents' libraries: tools_read.py URL KEY.

It ends with an error where one of them refuses a schema, closes an object that is open, takes an open tool for a strict one, or hides why the server refused.
"""

import asyncio
import json
import sys

import fastmcp
from agents.strict_schema import ensure_strict_json_schema
from fastmcp.client.transports import StreamableHttpTransport
from google.genai import types
from pydantic_ai.profiles.openai import OpenAIJsonSchemaTransformer

url, key = sys.argv[1].rstrip("/") + "/mcp", sys.argv[2]
OPEN = {"explain": ["query"], "ask": ["query"], "compare": ["a", "b"]}
wrong = []


def client(secret):
    return fastmcp.Client(
        StreamableHttpTransport(url, headers={"Authorization": f"Bearer {secret}"})
    )


def is_open(schema):
    return schema.get("additionalProperties") is True


async def main():
    async with client(key) as c:
        tools = await c.list_tools()
        for tool in tools:
            schema = tool.input_schema
            name = tool.name
            # Pydantic AI: what it sends to a model of OpenAI.
            transformer = OpenAIJsonSchemaTransformer(json.loads(json.dumps(schema)))
            sent = transformer.walk()
            for member in OPEN.get(name, []):
                if not is_open(sent["properties"][member]):
                    wrong.append(f"pydantic-ai closes {name}.{member}")
                if transformer.is_strict_compatible:
                    wrong.append(f"pydantic-ai makes {name} strict")
            # openai-agents: where strictness is asked for, an open tool must be left as it is.
            try:
                ensure_strict_json_schema(json.loads(json.dumps(schema)))
                if name in OPEN:
                    wrong.append(f"openai-agents makes {name} strict")
            except Exception as e:
                if name not in OPEN and name != "batch":
                    print(f"openai-agents leaves {name} as it is: {e}")
            # google-genai: both ways of a declaration.
            types.FunctionDeclaration(
                name=name, description=tool.description, parameters_json_schema=schema
            )
            try:
                types.Schema.model_validate(schema)
            except Exception as e:
                wrong.append(f"google-genai refuses {name}: {e}")
        holdouts = (await c.call_tool("holdouts", {})).structured_content
        holdout = holdouts["holdouts"][0]["name"]
        share = {"type": "fraction", "of": "delay > 15"}
        calls = {
            "columns": {"holdout": holdout},
            "describe": {"name": "trees"},
            "plan": {"n": 3000, "questions": 100},
            "explain": {"holdout": holdout, "query": share},
            "ask": {"holdout": holdout, "query": share},
            "batch": {"holdout": holdout, "queries": [share]},
            "compare": {
                "holdout": holdout,
                "a": {
                    "type": "accuracy",
                    "label": "delay > 15",
                    "prediction": "distance > 500",
                },
                "b": {
                    "type": "accuracy",
                    "label": "delay > 15",
                    "prediction": "distance > 900",
                },
            },
            "budget": {"holdout": holdout},
        }
        for name, arguments in calls.items():
            said = (await c.call_tool(name, arguments)).structured_content
            if not said.get("sentence"):
                wrong.append(f"{name} says {said}")
        if {t.name for t in tools} != {*calls, "holdouts"}:
            wrong.append(f"not called: {sorted({t.name for t in tools} - set(calls))}")
        large = {"type": "accuracy", "label": "delay > 15", "note": "x" * 5_000_000}
        try:
            await c.call_tool("ask", {"holdout": holdout, "query": large})
            wrong.append("a message of 5 MB is taken")
        except Exception as e:
            if "larger than" not in str(e):
                wrong.append(f"a message of 5 MB: {type(e).__name__}: {e}")
    try:
        async with client("hk_nobody") as c:
            await c.list_tools()
        wrong.append("a wrong key is taken")
    except Exception as e:
        text = str(e) + "".join(str(x) for x in getattr(e, "exceptions", ()))
        if "key" not in text:
            wrong.append(f"a wrong key: {type(e).__name__}: {e}")
    print("\n".join(wrong) if wrong else f"{len(tools)} tools are read alike by all")
    return bool(wrong)


sys.exit(asyncio.run(main()))
