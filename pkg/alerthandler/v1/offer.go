package v1

// The name and the key of the ConfigMap in which the service alert-handler publishes an Offer. The Offer contains no secrets. If the service isn't
// started, the ConfigMap is missing.
const (
	OfferName = "pai-notifications"
	OfferKey  = "offer.json"
)

// The name and the key of the ConfigMap that holds the record of sent notices.
const (
	RecordName = "pai-alert-handler-notices"
	RecordKey  = "record.json"
)

// Offer describes the notices that the alert handler can send.
type Offer struct {
	// Mail reports whether a mail server is configured.
	Mail bool `json:"mail"`
	// PersonalWebhooks reports whether people may have their own webhooks.
	PersonalWebhooks bool `json:"personalWebhooks"`
	// Required lists the kinds of notices that people can't turn off.
	Required []string `json:"required"`
}
