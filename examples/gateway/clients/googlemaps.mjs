// Google's SDK for Node through the gateway.
//
//   GATEWAY=http://127.0.0.1:8787/google node googlemaps.mjs [how many addresses]
import { Client } from "@googlemaps/google-maps-services-js";
import { report } from "./report.mjs";

const gateway = process.env.GATEWAY ?? "http://127.0.0.1:8787/google";
const client = new Client({});

await report(async (n) => {
  const answer = await client.geocode({ url: `${gateway}/maps/api/geocode/json`, params: { address: `Street ${n}, Berlin`, key: process.env.OUTLAY_TOKEN ?? "none" } });
  return answer.data.results[0].place_id;
});
