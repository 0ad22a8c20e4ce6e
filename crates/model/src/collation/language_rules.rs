//! The rules of languages, in the notation of UTS #35: `<` puts a letter after another one, `<<` gives it
//! another accent, `<<<` another case, `=` nothing; `[1]` before a letter means the place before it, and `/`
//! is followed by letters that the letter has in addition.

/// The rules of a language.
pub(super) struct Rules {
    /// The numbers of the collations `_ai_ci` and `_as_cs`.
    pub numbers: [u16; 2],
    pub text: &'static str,
    pub order: Order,
}

/// Differences of a language besides its letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Nothing.
    Default,
    /// Capitals are before small letters.
    CapitalsFirst,
    /// Cyrillic letters are before all others.
    CyrillicFirst,
    /// Cyrillic letters follow the Latin ones.
    CyrillicAfterLatin,
}

const fn rules(numbers: [u16; 2], text: &'static str) -> Rules {
    Rules { numbers, text, order: Order::Default }
}

const fn ordered(numbers: [u16; 2], order: Order, text: &'static str) -> Rules {
    Rules { numbers, text, order }
}

const CROATIAN: &str = "&C<č<<<Č<ć<<<Ć &D<dž<<<ǆ<<<Dž<<<ǅ<<<DŽ<<<Ǆ<đ<<<Đ &L<lj<<<ǉ<<<Lj<<<ǈ<<<LJ<<<Ǉ \
                        &N<nj<<<ǌ<<<Nj<<<ǋ<<<NJ<<<Ǌ &S<š<<<Š &Z<ž<<<Ž";

const NORWEGIAN: &str = "&D<<đ<<<Đ<<ð<<<Ð &t<<<þ/h &T<<<Þ/H &Y<<ü<<<Ü<<ű<<<Ű \
                         &[1]ǀ<æ<<<Æ<<ä<<<Ä<<ę<<<Ę<ø<<<Ø<<ö<<<Ö<<ő<<<Ő<<œ<<<Œ<å<<<Å<<aa<<<Aa<<<AA";

/// All languages but Japanese and Chinese, which have tables of their own (`east_asian.rs`).
pub(super) const RULES: [Rules; 28] = [
    rules([256, 279], "&AE<<ä<<<Ä &OE<<ö<<<Ö &UE<<ü<<<Ü"),
    rules(
        [257, 280],
        "&[1]b<á<<<Á &d<<đ<<<Đ<ð<<<Ð &[1]f<é<<<É &[1]j<í<<<Í &[1]p<ó<<<Ó &[1]v<ú<<<Ú &[1]z<ý<<<Ý \
         &[1]ǀ<æ<<<Æ<<ä<<<Ä<ö<<<Ö<<ø<<<Ø<å<<<Å",
    ),
    rules(
        [258, 281],
        "&[1]D<č<<<Č &[1]H<ģ<<<Ģ &I<<y<<<Y &[1]L<ķ<<<Ķ &[1]M<ļ<<<Ļ &[1]O<ņ<<<Ņ &[1]S<ŗ<<<Ŗ &[1]T<š<<<Š \
         &[1]Ʒ<ž<<<Ž",
    ),
    rules([259, 282], "&A<ă<<<Ă<â<<<Â &I<î<<<Î &S<ş=ș<<<Ş=Ș &T<ţ=ț<<<Ţ=Ț"),
    rules([260, 283], "&C<č<<<Č<ć<<<Ć &D<đ<<<Đ &S<š<<<Š &Z<ž<<<Ž"),
    rules([261, 284], "&A<ą<<<Ą &C<ć<<<Ć &E<ę<<<Ę &L<ł<<<Ł &N<ń<<<Ń &O<ó<<<Ó &S<ś<<<Ś &Z<ź<<<Ź<ż<<<Ż"),
    rules([262, 285], "&[1]T<š<<<Š<z<<<Z<ž<<<Ž &[1]X<õ<<<Õ<ä<<<Ä<ö<<<Ö<ü<<<Ü"),
    rules([263, 286], "&N<ñ<<<Ñ"),
    rules(
        [264, 287],
        "&D<<đ<<<Đ<<ð<<<Ð &t<<<þ/h &T<<<Þ/H &Y<<ü<<<Ü<<ű<<<Ű \
         &[1]ǀ<å<<<Å<ä<<<Ä<<æ<<<Æ<<ę<<<Ę<ö<<<Ö<<ø<<<Ø<<ő<<<Ő<<œ<<<Œ<<ô<<<Ô",
    ),
    rules([265, 288], "&C<ç<<<Ç &G<ğ<<<Ğ &[1]i<ı<<<I &i<<<İ &O<ö<<<Ö &S<ş<<<Ş &U<ü<<<Ü"),
    rules([266, 289], "&C<č<<<Č &H<ch<<<cH<<<Ch<<<CH &R<ř<<<Ř &S<š<<<Š &Z<ž<<<Ž"),
    ordered(
        [267, 290],
        Order::CapitalsFirst,
        "&D<<đ<<<Đ<<ð<<<Ð &t<<<þ/h &T<<<Þ/H &Y<<ü<<<Ü<<ű<<<Ű \
         &[1]ǀ<æ<<<Æ<<ä<<<Ä<ø<<<Ø<<ö<<<Ö<<ő<<<Ő<<œ<<<Œ<å<<<Å<<<aa<<<Aa<<<AA",
    ),
    rules(
        [268, 291],
        "&\u{300}=\u{307}\u{300} &\u{301}=\u{307}\u{301} &\u{303}=\u{307}\u{303} &A<<ą<<<Ą &C<č<<<Č \
         &E<<ę<<<Ę<<ė<<<Ė &I<<į<<<Į<<y<<<Y &S<š<<<Š &U<<ų<<<Ų<<ū<<<Ū &Z<ž<<<Ž",
    ),
    rules([269, 292], "&A<ä<<<Ä &C<č<<<Č &H<ch<<<cH<<<Ch<<<CH &O<ô<<<Ô &R<ř<<<Ř &S<š<<<Š &Z<ž<<<Ž"),
    rules([270, 293], "&N<ñ<<<Ñ &C<ch<<<Ch<<<CH &l<ll<<<Ll<<<LL"),
    rules([271, 294], "&I<<j<<<J &V<<u<<<U"),
    rules([273, 296], "&C<ĉ<<<Ĉ &G<ĝ<<<Ĝ &H<ĥ<<<Ĥ &J<ĵ<<<Ĵ &S<ŝ<<<Ŝ &U<ŭ<<<Ŭ"),
    rules(
        [274, 297],
        "&C<cs<<<Cs<<<CS &D<dz<<<Dz<<<DZ &DZ<dzs<<<Dzs<<<DZS &G<gy<<<Gy<<<GY &L<ly<<<Ly<<<LY &N<ny<<<Ny<<<NY \
         &S<sz<<<Sz<<<SZ &T<ty<<<Ty<<<TY &Z<zs<<<Zs<<<ZS &O<ö<<<Ö<<ő<<<Ő &U<ü<<<Ü<<ű<<<Ű \
         &cs<<<ccs/cs &Cs<<<Ccs/cs &CS<<<CCS/CS &dz<<<ddz/dz &Dz<<<Ddz/dz &DZ<<<DDZ/DZ \
         &dzs<<<ddzs/dzs &Dzs<<<Ddzs/dzs &DZS<<<DDZS/DZS &gy<<<ggy/gy &Gy<<<Ggy/gy &GY<<<GGY/GY \
         &ly<<<lly/ly &Ly<<<Lly/ly &LY<<<LLY/LY &ny<<<nny/ny &Ny<<<Nny/ny &NY<<<NNY/NY \
         &sz<<<ssz/sz &Sz<<<Ssz/sz &SZ<<<SSZ/SZ &ty<<<tty/ty &Ty<<<Tty/ty &TY<<<TTY/TY \
         &zs<<<zzs/zs &Zs<<<Zzs/zs &ZS<<<ZZS/ZS",
    ),
    ordered([275, 298], Order::CyrillicAfterLatin, CROATIAN),
    rules(
        [277, 300],
        "&\u{300}<<\u{309}<<\u{303}<<\u{301}<<\u{323} &a<ă<<<Ă<â<<<Â &d<đ<<<Đ &e<ê<<<Ê &o<ô<<<Ô<ơ<<<Ơ &u<ư<<<Ư",
    ),
    ordered([306, 307], Order::CyrillicFirst, ""),
    rules([310, 311], NORWEGIAN),
    rules([312, 313], NORWEGIAN),
    ordered([314, 315], Order::CyrillicAfterLatin, CROATIAN),
    ordered([316, 317], Order::CyrillicAfterLatin, CROATIAN),
    ordered([318, 319], Order::CyrillicFirst, ""),
    rules([320, 321], "&N<ñ<<<Ñ"),
    ordered([322, 323], Order::CyrillicFirst, ""),
];
