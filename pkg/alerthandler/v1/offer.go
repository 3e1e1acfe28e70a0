package v1

// The service alert-handler publishes in this ConfigMap how it sends notices, without secrets. The ConfigMap is missing if the service isn't started.
const (
	OfferName = "pai-notifications"
	OfferKey  = "offer.json"
)

// The ConfigMap with the record of notices that were sent.
const (
	RecordName = "pai-alert-handler-notices"
	RecordKey  = "record.json"
)

// Offer describes the notices that the alert handler sends.
type Offer struct {
	// Mail reports whether there is a mail server.
	Mail bool `json:"mail"`
	// PersonalWebhooks reports whether people may have their own webhooks.
	PersonalWebhooks bool `json:"personalWebhooks"`
	// Required are the kinds of notices that people can't turn off.
	Required []string `json:"required"`
}
