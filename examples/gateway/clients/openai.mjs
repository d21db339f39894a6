// OpenAI's SDK for Node through the gateway.
//
//   GATEWAY=http://127.0.0.1:8787/openai node openai.mjs [how many questions]
import OpenAI from "openai";
import { report } from "./report.mjs";

const client = new OpenAI({
  baseURL: `${process.env.GATEWAY ?? "http://127.0.0.1:8787/openai"}/v1`,
  apiKey: process.env.OUTLAY_TOKEN ?? "none",
  ...(process.env.SDK_RETRIES ? {} : { maxRetries: 0 }), // the gateway repeats what may be repeated
});

await report(async (n) => {
  const answer = await client.chat.completions.create({ model: "gpt-4o-mini", max_tokens: 10, messages: [{ role: "user", content: `Question ${n}` }] });
  return answer.choices[0].message.content;
});
