// Report makes the calls one after the other, as many as the command line says, and prints
// what the program sees of each as a line of JSON.
export async function report(call) {
  const many = Number(process.argv[2] ?? 1);
  const run = process.env.RUN ?? "";
  for (let n = 1; n <= many; n++) {
    let seen;
    try {
      seen = { ok: true, value: (await call(`${run}${n}`)) ?? null };
    } catch (e) {
      const status = e.status ?? e.statusCode ?? e.response?.status ?? null;
      const body = e.response?.data;
      seen = { ok: false, error: e.constructor.name, status, code: e.code ?? null, message: [String(body?.error_message ?? e.message), e.detail].filter(Boolean).join(" - ") };
    }
    console.log(JSON.stringify(seen));
  }
}
