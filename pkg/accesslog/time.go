package accesslog

import "time"

const (
	timeLen  = len("04/Sep/2026:08:03:42 +0000")
	dateLen  = len("04/Sep/2026:")
	clockLen = len("08:03:42")
	utc      = " +0000" // the one zone that S3 writes
)

var months = []byte("JanFebMarAprMayJunJulAugSepOctNovDec")

// parseTime reads a time as "04/Sep/2026:08:03:42 +0000". time.Parse is slower
// and lets one-digit days pass.
func parseTime(b []byte) (time.Time, bool) {
	if len(b) != timeLen || b[2] != '/' || b[6] != '/' || b[11] != ':' || b[20] != ' ' {
		return time.Time{}, false
	}
	month := 0
	for i := 0; i < len(months); i += 3 {
		if string(b[3:6]) == string(months[i:i+3]) {
			month = i/3 + 1
		}
	}
	day, ok1 := twoDigits(b[0:])
	century, ok2 := twoDigits(b[7:])
	year, ok3 := twoDigits(b[9:])
	inDay, ok4 := parseClock(b[dateLen:])
	zone, ok5 := parseZone(b[21:])
	if month == 0 || !ok1 || !ok2 || !ok3 || !ok4 || !ok5 {
		return time.Time{}, false
	}
	date := time.Date(century*100+year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	if date.Day() != day { // 31/Feb
		return time.Time{}, false
	}
	return date.Add(inDay - zone), true
}

// parseClock reads the "08:03:42" that b begins with as the time since midnight.
func parseClock(b []byte) (time.Duration, bool) {
	h, ok1 := twoDigits(b[0:])
	m, ok2 := twoDigits(b[3:])
	s, ok3 := twoDigits(b[6:])
	ok := ok1 && ok2 && ok3 && b[2] == ':' && b[5] == ':' && h < 24 && m < 60 && s < 60
	return time.Duration(h*3600+m*60+s) * time.Second, ok
}

// parseZone reads "+0000"; S3 writes no other, but the form has others.
func parseZone(b []byte) (time.Duration, bool) {
	h, ok1 := twoDigits(b[1:])
	m, ok2 := twoDigits(b[3:])
	d := time.Duration(h*60+m) * time.Minute
	if b[0] == '-' {
		d = -d
	}
	return d, ok1 && ok2 && (b[0] == '+' || b[0] == '-') && h < 24 && m < 60
}

func twoDigits(b []byte) (int, bool) {
	return int(b[0]-'0')*10 + int(b[1]-'0'), isDigit(b[0]) && isDigit(b[1])
}
