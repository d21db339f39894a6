package dialect

import (
	"slices"
	"strings"
)

// aws are the services of Amazon. The error code decides, under nearly any status.
// x-amz-retry-after is what botocore obeys.
var aws = []vendor{
	{name: "AWS SES", also: []string{"awssesv2", "amazonses", "amazonsesv2", "awssns", "amazonsns", "awsendusermessaging", "awspinpoint"},
		hints: amzRetryAfter, peek: refusals | answers, refusal: readAWSHeader, body: readAWS},
	{name: "AWS", also: []string{"amazon", "bedrock"},
		hints: amzRetryAfter, peek: refusals, refusal: readAWSHeader, body: readAWS},
}

var amzRetryAfter = []hint{{"X-Amz-Retry-After", DeltaMillis}}

// awsCodes are botocore's throttling codes, and SNS' own.
var awsCodes = []string{
	"Throttling", "ThrottlingException", "ThrottledException", "RequestThrottledException", "TooManyRequestsException",
	"ProvisionedThroughputExceededException", "TransactionInProgressException", "RequestLimitExceeded", "BandwidthLimitExceeded",
	"LimitExceededException", "RequestThrottled", "SlowDown", "PriorRequestNotComplete", "EC2ThrottledException", "Throttled",
}

func readAWSHeader(r Reading, a Answer) Reading {
	code, _, _ := strings.Cut(first(a.Header, "X-Amzn-Errortype"), ":")
	r.awsCode(code, "headers")
	return r
}

func (r *Reading) awsCode(code, source string) {
	if i := strings.LastIndexByte(code, '#'); i >= 0 {
		code = code[i+1:]
	}
	if slices.Contains(awsCodes, trim(code)) {
		r.throttle(source)
	}
}

func readAWS(r Reading, a Answer) Reading {
	if a.Status < 400 {
		r.Ref = id(element(a.Body, "MessageId"))
		if r.Ref == "" {
			r.Ref = id(find(a.Body, "MessageId"))
		}
		return r
	}
	code, message := element(a.Body, "Code"), element(a.Body, "Message")
	for path, v := range leaves(a.Body) {
		switch string(path) {
		case "__type", "code", "Code", "Error.Code":
			code = v.text()
		case "message", "Message", "Error.Message":
			message = v.text()
		case "Reason":
			if strings.HasPrefix(v.text(), "MONTHLY_SPEND_LIMIT_REACHED") {
				r.wall("balance", "body")
				return r
			}
		}
	}
	r.awsCode(code, "body")
	if r.Throttled { // the text alone tells the day's quota from the rate
		switch text := lowerASCII(message); {
		case period(text) == "daily":
			r.quota("daily", "body")
		case strings.Contains(text, "sending rate"):
			r.Policy = "rate"
		}
	}
	return r
}
