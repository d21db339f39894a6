// Twilio's SDK for Node through the gateway. It has no option for its base URL, so its
// HTTP client rewrites the address of every request, also those of further pages.
//
//   GATEWAY=http://127.0.0.1:8787/twilio node twilio.mjs [how many messages]
import twilio from "twilio";
import { report } from "./report.mjs";

const gateway = process.env.GATEWAY ?? "http://127.0.0.1:8787/twilio";

class Through extends twilio.RequestClient {
  request(opts) {
    return super.request({ ...opts, uri: opts.uri.replace("https://api.twilio.com", gateway) });
  }
}

// Where the gateway has the real key, the program shows a token of the gateway in its place.
const client = twilio(process.env.TWILIO_ACCOUNT_SID ?? "AC00000000000000000000000000000000", process.env.OUTLAY_TOKEN ?? "none", {
  httpClient: new Through({ timeout: 30000 }),
});

await report(async (n) => {
  const message = await client.messages.create({ to: "+12025550123", from: "+12025550100", body: `Message ${n}` });
  return message.sid;
});
