package strictaws

import "net/http"

// apiError is a refusal as a service answers it.
type apiError struct {
	Status  int
	Code    string
	Message string
	Header  http.Header
	// Fields are further elements of an S3 error, such as Header in a 501.
	Fields map[string]string
}

func (e *apiError) Error() string { return e.Code + ": " + e.Message }

func refuse(status int, code, message string) *apiError {
	return &apiError{Status: status, Code: code, Message: message}
}

func badRequest(code, message string) *apiError {
	return refuse(http.StatusBadRequest, code, message)
}

func accessDenied() *apiError {
	return refuse(http.StatusForbidden, "AccessDenied", "Access Denied")
}

func notImplemented(what string) *apiError {
	e := refuse(http.StatusNotImplemented, "NotImplemented", "A header or parameter you provided implies functionality that is not implemented")
	e.Fields = map[string]string{"Header": what}
	return e
}
