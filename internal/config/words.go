package config

// Words that fields may hold.
const (
	ModeCopy       = "copy"
	ModeObserve    = "observe"
	ReadAnonymous  = "anonymous"
	ReadSigned     = "signed"
	WhenDoneKeep   = "keep"
	WhenDoneDelete = "delete"
	SSENone        = "none"
	SSEAES256      = "AES256"
	SSEKMS         = "aws:kms"
)
