// GitHub's SDK for Node through the gateway.
//
//   GATEWAY=http://127.0.0.1:8787/github node octokit.mjs [how many issues]
import { Octokit } from "@octokit/rest";
import { report } from "./report.mjs";

const octokit = new Octokit({ baseUrl: process.env.GATEWAY ?? "http://127.0.0.1:8787/github", auth: process.env.OUTLAY_TOKEN, log: { debug() {}, info() {}, warn() {}, error() {} } });

await report(async (n) => {
  const issue = await octokit.rest.issues.create({ owner: "octo", repo: "cat", title: `Issue ${n}` });
  return issue.data.number;
});
