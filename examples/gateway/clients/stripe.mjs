// Stripe's SDK for Node through the gateway. It keeps only host and port of an address, so
// it needs a listener of its own.
//
//   GATEWAY=http://127.0.0.1:8790 node stripe.mjs [how many customers]
import Stripe from "stripe";
import { report } from "./report.mjs";

const gateway = new URL(process.env.GATEWAY ?? "http://127.0.0.1:8790");
const stripe = new Stripe(process.env.OUTLAY_TOKEN ?? "sk_test_none", {
  host: gateway.hostname,
  port: gateway.port,
  protocol: gateway.protocol.replace(":", ""),
  telemetry: false,
  ...(process.env.SDK_RETRIES ? {} : { maxNetworkRetries: 0 }),
});

await report(async (n) => {
  const customer = await stripe.customers.create({ name: `Customer ${n}` });
  return customer.id;
});
