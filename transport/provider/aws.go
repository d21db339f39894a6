package provider

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// AWSSNS is Amazon SNS at perPart US dollars for each part of a text message that is
// published to a phone number.
//
// Publishing to a topic or a device has no price here; all other actions are free. SNS
// stops sending within minutes of its own monthly spend limit (docs.aws.amazon.com, read
// 2026-11): set that as well. Its rates depend on region and account. The AWS SDK repeats
// throttles and transport errors: set its RetryMaxAttempts to 1. It signs its requests,
// which outlay does not change; there is no idempotency key.
func AWSSNS(perPart budget.Amount) transport.Provider {
	return transport.Provider{
		Name:    "aws-sns",
		Match:   awsHosts("sns"),
		Dialect: dialect.For("aws-sns"),
		Price:   AWSSNSPrice(price.SMS{Segment: perPart}),
	}
}

// AWSSNSPrice is the Price of [AWSSNS] with other prices for texts, such as by
// destination.
func AWSSNSPrice(s price.SMS) transport.Pricer {
	s.To, s.Text = []string{"PhoneNumber"}, []string{"Message"}
	s.Other = []string{"MessageStructure", "TopicArn", "TargetArn"}
	return awsActions{"Publish": s, "PublishBatch": nil}
}

// AWSSES is Amazon SES, versions 1 and 2 of its API, at perRecipient US dollars for each
// recipient of an email. Raw emails whose recipients stand in the text alone have no price
// here, neither have those to a list. All other calls are free.
//
// The send rate and the quota of the account, which holds for any 24 hours, are told by
// GetSendQuota (docs.aws.amazon.com, read 2026-11): put them into Rates and Budgets. A
// quota that is used up is left alone for ten minutes at a time. The AWS SDK repeats
// throttles and transport errors: set its RetryMaxAttempts to 1. There is no idempotency
// key.
func AWSSES(perRecipient budget.Amount) transport.Provider {
	json := price.Per(perRecipient, price.Values(
		"Destination.ToAddresses", "Destination.CcAddresses", "Destination.BccAddresses",
		"BulkEmailEntries.Destination.ToAddresses", "BulkEmailEntries.Destination.CcAddresses", "BulkEmailEntries.Destination.BccAddresses",
	))
	form := price.Per(perRecipient, sesRecipients)
	return transport.Provider{
		Name:    "aws-ses",
		Match:   awsHosts("email"),
		Dialect: dialect.For("aws-ses"),
		Price: rules{reads: true, list: []rule{
			{http.MethodPost, "/v2/email/outbound-emails", json},
			{http.MethodPost, "/v2/email/outbound-bulk-emails", json},
			{"", "/v2/email/", price.Free},
			{http.MethodPost, "/", awsActions{
				"SendEmail": form, "SendRawEmail": form, "SendTemplatedEmail": form, "SendBulkTemplatedEmail": form, "SendBounce": form,
			}},
		}},
	}
}

// sesRecipients counts fields such as Destination.ToAddresses.member.1.
func sesRecipients(r *http.Request) (n int64, err error) {
	form, err := queryForm(r)
	if err != nil {
		return 0, err
	}
	for name := range form {
		if strings.Contains(name, "Addresses.member.") || strings.HasPrefix(name, "Destinations.member.") && strings.Count(name, ".") == 2 {
			n++
		}
	}
	if n == 0 {
		err = fmt.Errorf("%w: no recipient was found", budget.ErrUnpriced)
	}
	return n, err
}

// awsActions prices calls of the AWS query protocol by their Action. Those that are not
// in it are free.
type awsActions map[string]transport.Pricer

// Unit is the currency of the prices.
func (a awsActions) Unit() string {
	for _, p := range a {
		if u, ok := p.(interface{ Unit() string }); ok {
			return u.Unit()
		}
	}
	return budget.USD
}

// Quote gives the price of the action.
func (a awsActions) Quote(r *http.Request) (budget.Quote, error) {
	form, err := queryForm(r)
	if err != nil {
		return budget.Quote{}, err
	}
	for name := range r.URL.Query() {
		if name == "Action" {
			return budget.Quote{}, fmt.Errorf("%w: the action stands in the URL", budget.ErrUnpriced)
		}
	}
	actions := form["Action"]
	if len(actions) != 1 {
		return budget.Quote{}, fmt.Errorf("%w: it has no action, or several", budget.ErrUnpriced)
	}
	switch p, billed := a[actions[0]]; {
	case !billed:
		return budget.Quote{Unit: a.Unit()}, nil
	case p == nil:
		return budget.Quote{}, fmt.Errorf("%w: the preset does not know how the vendor bills this action", budget.ErrUnpriced)
	default:
		return p.Quote(r)
	}
}

// awsHosts are the hosts of a service in all regions (docs.aws.amazon.com, endpoints of
// the service, read 2026-11). Append to Match what is newer.
func awsHosts(service string) []string {
	var match []string
	for _, region := range []string{
		"us-east-1", "us-east-2", "us-west-1", "us-west-2", "us-gov-east-1", "us-gov-west-1", "ca-central-1", "ca-west-1", "mx-central-1", "sa-east-1",
		"eu-central-1", "eu-central-2", "eu-north-1", "eu-south-1", "eu-south-2", "eu-west-1", "eu-west-2", "eu-west-3", "il-central-1", "me-central-1", "me-south-1", "af-south-1",
		"ap-east-1", "ap-east-2", "ap-northeast-1", "ap-northeast-2", "ap-northeast-3", "ap-south-1", "ap-south-2",
		"ap-southeast-1", "ap-southeast-2", "ap-southeast-3", "ap-southeast-4", "ap-southeast-5", "ap-southeast-6", "ap-southeast-7",
	} {
		match = append(match, service+"."+region+".amazonaws.com", service+"-fips."+region+".amazonaws.com", service+"."+region+".api.aws")
	}
	return append(match, service+".cn-north-1.amazonaws.com.cn", service+".cn-northwest-1.amazonaws.com.cn")
}

// AWSRefusal makes the error response of the AWS query protocol, in XML, of a refusal.
func AWSRefusal(r transport.Refused) (status int, h http.Header, body []byte) {
	f := awsShape.say(r)
	status, h, _ = awsShape.refuse(r)
	h.Set("Content-Type", "text/xml")
	code := f.pick("Throttled", "LimitExceeded", "ServiceUnavailable")
	return status, h, fmt.Appendf(nil, "<ErrorResponse><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error></ErrorResponse>", code, xmlText(f.text))
}

// awsShape: SDKs repeat "Throttled" whatever its status, and nothing else below 500.
var awsShape = shape{members: func(said) []member { return nil }}
