<?php
// PHP through the gateway, without an SDK and without Composer: php-cli and php-curl are
// enough. Twilio's own SDK takes the same address from a subclass of its Http\CurlClient.
// A refusal is an ordinary answer to curl, so that the status must be looked at.
//
//   GATEWAY=http://127.0.0.1:8787/twilio php curl.php [how many messages]

final class ApiError extends RuntimeException
{
    public function __construct(string $message, public readonly int $status, int $code)
    {
        parent::__construct($message, $code);
    }
}

/** Sends a form and returns the answer, or throws what the gateway or the vendor says. */
function post(string $path, array $form): array
{
    $call = curl_init((getenv('GATEWAY') ?: 'http://127.0.0.1:8787/twilio') . $path);
    curl_setopt_array($call, [
        CURLOPT_POSTFIELDS => http_build_query($form),
        CURLOPT_USERPWD => 'AC1:' . (getenv('OUTLAY_TOKEN') ?: 'none'),
        CURLOPT_RETURNTRANSFER => true,
        CURLOPT_TIMEOUT => 30, // above max_wait of the gateway
        CURLOPT_NOPROXY => '*', // else HTTP_PROXY would get the call
    ]);
    $body = curl_exec($call);
    if ($body === false) {
        throw new RuntimeException(curl_error($call)); // nobody knows what became of it
    }
    $status = curl_getinfo($call, CURLINFO_RESPONSE_CODE);
    $answer = json_decode($body, true) ?? [];
    if ($status >= 400) {
        throw new ApiError($answer['message'] ?? "status $status", $status, (int) ($answer['code'] ?? 0));
    }
    return $answer;
}

for ($n = 1; $n <= (int) ($argv[1] ?? 1); $n++) {
    try {
        $sent = post('/2010-04-01/Accounts/AC1/Messages.json', [
            'To' => '+12025550123', 'From' => '+12025550100', 'Body' => 'Message ' . getenv('RUN') . $n,
        ]);
        $seen = ['ok' => true, 'value' => $sent['sid']];
    } catch (RuntimeException $e) {
        $seen = ['ok' => false, 'error' => $e::class, 'status' => $e->status ?? null, 'code' => $e->getCode(), 'message' => $e->getMessage()];
    }
    echo json_encode($seen), "\n";
}
